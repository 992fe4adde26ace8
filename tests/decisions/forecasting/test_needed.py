"""Our pilots in a queue, and until when bags need them."""

from __future__ import annotations

import pytest

from adaptor.decisions.forecasting.needed import BagAtWork, needed_until, pilots_in
from adaptor.decisions.pilots import Pilot
from adaptor.model import Estimate, PendingJob, PilotState, QueueState, Request, RunningJob


def pilot(id: int, job: str | None, p: int = 4, bag: int | None = None, leaving: str = "") -> Pilot:
    return Pilot(id=id, state=PilotState.QUEUED, request=Request(p, 600), job=job, bag=bag, leaving=leaving)


QUEUE = QueueState(
    now=0.0,
    processors=8,
    running=(RunningJob("10", 4, 600.0), RunningJob("11", 4, 600.0)),
    pending=(PendingJob("12", 4, 600.0),),
)


@pytest.mark.parametrize(
    ("other", "found"),
    [
        ([pilot(2, "11"), pilot(3, "12")], {"10", "11", "12"}),  # another partition of the same cluster
        ([pilot(2, "11"), pilot(3, "12"), pilot(4, "13"), pilot(5, None)], {"10", "11", "12"}),
        ([pilot(2, "11"), pilot(3, "907"), pilot(4, "908")], {"10"}),  # another cluster
        ([pilot(2, "11", p=2)], {"10"}),  # where a job of others has this number
        ([], {"10"}),
    ],
)
def test_pilots_of_other_partitions_are_ours_too(other: list[Pilot], found: set[str]) -> None:
    pilots = {"one": [pilot(1, "10")], "two": other}
    assert {each.job for _, each in pilots_in(QUEUE, "one", pilots)} == found


def test_a_pilot_is_needed_until_the_last_of_its_bags_is_done() -> None:
    now, early, late = (Estimate(at, at, at) for at in (5.0, 50.0, 90.0))
    both, one = frozenset({"one", "two"}), frozenset({"one"})
    bags = {
        1: BagAtWork(alone=False, sites=both, end=early),
        2: BagAtWork(alone=False, sites=one, end=late),
        3: BagAtWork(alone=True, sites=both, end=None),
    }
    shared = pilot(1, "10")
    assert needed_until(shared, "one", bags, 5.0) == late
    assert needed_until(shared, "two", bags, 5.0) == early
    assert needed_until(shared, "one", bags, 5.0, but=2) == early
    assert needed_until(pilot(2, "11", bag=3), "one", bags, 5.0) is None
    assert needed_until(pilot(2, "11", bag=4), "one", bags, 5.0) == now, "its bag has ended, or is paused"
    assert needed_until(pilot(2, "11", bag=3, leaving="the bag is done"), "one", bags, 5.0) == now
