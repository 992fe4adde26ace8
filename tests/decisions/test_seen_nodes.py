"""What is learned of idle nodes, look by look, against a count of each node for itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import NodeUse
from adaptor.reports import NodeReport

NAMES = ("n1", "n2", "n3", "n4")
reports = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(NodeUse), max_size=4).map(
    lambda uses: [NodeReport(name=name, processors=4, use=use) for name, use in sorted(uses.items())]
)
looks = st.lists(st.tuples(st.integers(1, 500), reports), max_size=20)


class Naive:
    """Each node for itself, with all its idle time told of at each look."""

    def __init__(self) -> None:
        self.learner = IdleLearner()
        self.since: dict[str, float] = {}
        self._told: dict[str, float] = {}

    def looked(self, seen: list[NodeReport], now: float) -> None:
        uses = {report.name: report.use for report in seen}
        for name in {*uses, *self.since}:
            if uses.get(name) is NodeUse.IDLE:
                self.since.setdefault(name, now)
            if name in self.since:
                told, age = self._told.get(name, 0.0), now - self.since[name]
                self.learner.saw(told, age, taken=uses.get(name) is NodeUse.TAKEN)
                self._told[name] = age
            if uses.get(name) is not NodeUse.IDLE:
                self.since.pop(name, None)
                self._told.pop(name, None)


@given(looks)
def test_what_is_told_of_groups_of_nodes_is_what_each_of_them_tells(looks) -> None:
    seen, naive, now = SeenNodes(), Naive(), 0.0
    for pause, found in looks:
        now += pause
        seen.looked(found, now)
        naive.looked(found, now)
        assert {name: seen.since(name) for name in NAMES} == {name: naive.since.get(name) for name in NAMES}
    # All that is still untold: the same nodes a minute later.
    last = looks[-1][1] if looks else []
    seen.looked(last, now + 60)
    naive.looked(last, now + 60)
    assert seen.learner.idleness.ends == naive.learner.idleness.ends
    assert seen.learner.idleness.seconds == pytest.approx(naive.learner.idleness.seconds)


@given(looks)
def test_a_look_tells_which_nodes_are_not_as_they_were(looks) -> None:
    seen, before = SeenNodes(), {}
    for number, (_, found) in enumerate(looks):
        changed = seen.looked(found, float(number))
        by_name = {report.name: report for report in found}
        assert {report.name for report in changed} >= {
            name for name, report in by_name.items() if before.get(name) != report
        }
        assert seen.by_name == by_name
        before = by_name


def test_a_copy_goes_its_own_way() -> None:
    idle = [NodeReport(name="n1", processors=4, use=NodeUse.IDLE)]
    seen = SeenNodes()
    seen.looked(idle, 0.0)
    twin = seen.copy()
    twin.looked([NodeReport(name="n1", processors=4, use=NodeUse.TAKEN)], 50.0)
    assert (twin.since("n1"), seen.since("n1")) == (None, 0.0)
    assert sum(twin.learner.idleness.ends) == 1
    assert sum(seen.learner.idleness.ends) == 0


def test_idle_periods_are_counted_of_which_the_beginning_is_seen() -> None:
    def node(use: NodeUse) -> list[NodeReport]:
        return [NodeReport(name="n1", processors=4, use=use), NodeReport(name="n2", processors=4, use=use)]

    seen = SeenNodes()
    seen.looked(node(NodeUse.IDLE), 0.0)
    assert seen.learner.idleness.begun == 0, "nobody knows when they became idle"
    seen.looked(node(NodeUse.TAKEN), 100.0)
    seen.looked(node(NodeUse.IDLE), 200.0)
    seen.looked(node(NodeUse.IDLE), 250.0)
    assert (seen.learner.idleness.begun, seen.learner.idleness.watched) == (2, 250.0)
    seen.looked(node(NodeUse.TAKEN), 300.0)
    seen.begin_anew()
    seen.looked(node(NodeUse.IDLE), 9000.0)
    assert (seen.learner.idleness.begun, seen.learner.idleness.watched) == (2, 300.0), "nobody looked"
    twin = seen.copy()
    twin.looked(node(NodeUse.IDLE), 9050.0)
    assert twin.learner.idleness.watched == 350.0
