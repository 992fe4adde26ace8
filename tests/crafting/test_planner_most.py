"""No more is asked for than a demand may have."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, Issue, PlanningView, SiteRules, Withhold
from adaptor.model import Limits, QueueState
from adaptor.resources import TaskSize

WHY = "bag 3 (cheap): 40 of 40 tasks remain"


def view(most: int | None, heuristic: str = "adaptive", cpus: int = 1) -> PlanningView:
    demand = Demand(
        waiting=40,
        runtime=60.0,
        task=TaskSize(processors=cpus),
        bag=3,
        most=most,
        why_most=WHY if most is not None else "",
    )
    return PlanningView(
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
    issued = [each for each in decisions if isinstance(each, Issue)]
    assert sum(each.crafted.request.p for each in issued) <= most
    assert bool(issued) == (most >= cpus)
    assert all(WHY in each.crafted.reason for each in issued)


def test_where_nothing_may_be_asked_for_it_says_why() -> None:
    seen = view(0)
    assert plan(seen) == [Withhold(WHY, seen.demands[0])]


def test_fewer_processors_are_asked_for_longer() -> None:
    (wide, *_), (narrow, *_) = plan(view(None)), plan(view(2))
    assert isinstance(wide, Issue)
    assert isinstance(narrow, Issue)
    assert narrow.crafted.request.tr > wide.crafted.request.tr


@pytest.mark.parametrize("heuristic", ["static", "adaptive"])
@given(longest=st.integers(60, 4000), most=st.none() | st.integers(1, 20))
def test_no_request_is_longer_than_may_be_asked_for(heuristic: str, longest: int, most: int | None) -> None:
    seen = view(most, heuristic)
    demand = msgspec.structs.replace(seen.demands[0], longest=longest)
    issued = [
        each for each in plan(msgspec.structs.replace(seen, demands=(demand,))) if isinstance(each, Issue)
    ]
    assert issued
    assert max(each.crafted.request.tr for each in issued) <= min(longest, 3600)
