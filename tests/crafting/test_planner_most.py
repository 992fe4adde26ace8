"""No more is asked for than a demand may have."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, Largest, SiteRules, SiteState, SubmitRequest, Withhold
from adaptor.crafting.submissions import SubmissionsLeft
from adaptor.model import Limits, QueueState
from adaptor.resources import TaskSize

WHY = "bag 3 (cheap): 40 of 40 tasks remain"


def view(most: float, heuristic: str = "adaptive", cpus: int = 1) -> SiteState:
    demand = Demand(
        waiting=40,
        runtime=60.0,
        task=TaskSize(processors=cpus),
        bag=3,
        most=most,
        why_most=WHY if most < math.inf else "",
    )
    return SiteState(
        now=0.0,
        queue=QueueState(now=0.0, processors=64),
        rules=SiteRules(limits=Limits(max_pending_requests=4, max_proc=16, max_tr=3600)),
        heuristic=heuristic,
        demands=(demand,),
    )


@pytest.mark.parametrize("heuristic", ["static", "adaptive"])
@given(most=st.integers(0, 80), cpus=st.integers(1, 4))
def test_all_requests_together_are_within_it(heuristic: str, most: int, cpus: int) -> None:
    decisions = plan(view(most, heuristic, cpus))
    issued = [each for each in decisions if isinstance(each, SubmitRequest)]
    assert sum(each.crafted.request.p for each in issued) <= most
    assert bool(issued) == (most >= cpus)
    assert all(WHY in each.crafted.reason for each in issued)


def test_where_nothing_may_be_asked_for_it_says_why() -> None:
    seen = view(0)
    assert plan(seen) == [Withhold(WHY, seen.demands[0])]


def test_fewer_processors_are_asked_for_longer() -> None:
    (wide, *_), (narrow, *_) = plan(view(math.inf)), plan(view(2))
    assert isinstance(wide, SubmitRequest)
    assert isinstance(narrow, SubmitRequest)
    assert narrow.crafted.request.tr > wide.crafted.request.tr


@pytest.mark.parametrize("heuristic", ["static", "adaptive"])
@given(longest=st.integers(60, 4000), most=st.just(math.inf) | st.integers(1, 20))
def test_no_request_is_longer_than_may_be_asked_for(heuristic: str, longest: int, most: float) -> None:
    seen = view(most, heuristic)
    demand = msgspec.structs.replace(seen.demands[0], longest=longest)
    issued = [
        each
        for each in plan(msgspec.structs.replace(seen, demands=(demand,)))
        if isinstance(each, SubmitRequest)
    ]
    assert issued
    assert max(each.crafted.request.tr for each in issued) <= min(longest, 3600)


def test_of_two_bounds_the_one_that_binds_is_said() -> None:
    """Six slots may be asked for, and no submission is left of the hour: that is why none is."""
    seen = msgspec.structs.replace(view(6, "completion"), submissions=SubmissionsLeft(0, 1000.0))
    (found,) = plan(seen)
    assert isinstance(found, Withhold)
    assert "max_submissions" in found.reason
    assert WHY not in found.reason
    (found,) = plan(msgspec.structs.replace(seen, demands=view(0).demands))
    assert isinstance(found, Withhold)
    assert WHY in found.reason


@pytest.mark.parametrize("heuristic", ["static", "adaptive", "completion"])
@given(p=st.integers(1, 20), tr=st.integers(60, 4000))
def test_no_request_is_larger_than_those_that_failed_allow(heuristic: str, p: int, tr: int) -> None:
    seen = view(math.inf, heuristic)
    demand = msgspec.structs.replace(seen.demands[0], largest=(("", Largest(p, tr, "too large")),))
    decisions = plan(msgspec.structs.replace(seen, demands=(demand,)))
    requests = [each.crafted.request for each in decisions if isinstance(each, SubmitRequest)]
    assert requests
    assert all(request.p <= p and request.tr <= tr for request in requests)
