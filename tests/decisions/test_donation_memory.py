"""What a decision sees of the nodes is kept from look to look; it is as if all were seen anew."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.decisions.donation_memory import DonationMemory
from adaptor.decisions.pilots import Arrival, Pilot, PilotTable
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.donation.situation import DonationRules, NodeUse
from adaptor.model import PilotState, Request
from adaptor.reports import NodeReport

NAMES = ("n1", "n2", "n3")
uses = st.tuples(*(st.sampled_from(NodeUse) for _ in NAMES))
operations = st.lists(
    st.one_of(
        st.tuples(st.just("look"), uses),
        st.tuples(st.just("pilot"), st.sampled_from(NAMES)),
        st.tuples(st.just("calls"), st.sampled_from(NAMES)),
        st.tuples(st.just("leaves"), st.sampled_from(NAMES)),
        st.tuples(st.just("gone"), st.sampled_from(NAMES)),
        st.tuples(st.just("fails"), st.sampled_from(NAMES)),
        st.tuples(st.just("given back"), st.sampled_from(NAMES)),
    ),
    max_size=30,
)


class Told:
    """A memory and its pilots that are told of all."""

    def __init__(self) -> None:
        self.memory = DonationMemory(DonationRules(), SeenNodes(), 0.0)
        self.pilots = PilotTable()
        self.told: dict[int, object] = {}

    def tell(self, number: int, what: str, about) -> None:
        now = 10.0 * number
        pilot = None if what == "look" else self.pilots.by_node.get(about)
        if what == "look":
            reports = [
                NodeReport(name=name, processors=1, use=use) for name, use in zip(NAMES, about, strict=True)
            ]
            for seen in self.memory.observe(reports, self.pilots, {}, now, 0.0):
                self.pilots[seen.id] = seen
            self.told |= self.memory.changed_nodes(self.pilots)
        elif what == "pilot" and pilot is None:
            self.pilots[number] = made = Pilot(
                id=number, state=PilotState.SUBMITTING, request=Request(1, 60), node=about, submitted=now
            )
            self.told[number] = self.memory.node_of(made)
        elif what == "fails":
            self.memory.not_submitted(about, "no", now)
        elif what == "given back":
            self.memory.give_back(about, now)
        elif pilot is not None and what == "calls":
            self.pilots[pilot.id] = pilot.heard(now, about, Arrival(1)).but(processors=1)
        elif pilot is not None and what == "leaves":
            self.pilots[pilot.id] = pilot.but(leaving="why not")
        elif pilot is not None and what == "gone":
            del self.pilots[pilot.id]
            self.memory.forget(pilot.id)


@given(operations)
def test_what_is_seen_does_not_depend_on_how_often_it_was_looked_at(operations) -> None:
    often, once = Told(), Told()
    for number, (what, about) in enumerate(operations, 1):
        often.tell(number, what, about)
        once.tell(number, what, about)
        often.memory.views(often.pilots, {}, 10.0 * number)
    now = 10.0 * len(operations)
    assert often.memory.views(often.pilots, {}, now) == once.memory.views(once.pilots, {}, now)


@given(operations)
def test_the_scheduling_of_tasks_knows_the_nodes_as_they_are(operations) -> None:
    told, looked = Told(), False
    for number, (what, about) in enumerate(operations, 1):
        told.tell(number, what, about)
        looked = what == "look"
    if looked:
        for pilot in told.pilots.donated.values():
            assert told.told[pilot.id] == told.memory.node_of(pilot)


@given(operations)
def test_the_parts_of_a_table_are_what_they_say(operations) -> None:
    told = Told()
    for number, (what, about) in enumerate(operations, 1):
        told.tell(number, what, about)
        pilots = told.pilots
        assert pilots.donated == dict(pilots)
        assert pilots.unsettled == {id: pilot for id, pilot in pilots.items() if not pilot.settled}
        assert pilots.by_node == {pilot.node: pilot for pilot in pilots.values()}
        assert sorted(pilot.id for pilot in pilots.concerned) == sorted(pilots.unsettled)
