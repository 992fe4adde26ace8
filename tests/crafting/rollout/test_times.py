"""Times are in proportion to the requests of a site."""

from __future__ import annotations

import pytest

from adaptor.crafting.planner import plan
from adaptor.crafting.rollout.times import USUAL, Times, times_for
from adaptor.crafting.situation import SiteRules, TaskTimes, Withdraw
from adaptor.model import Limits, PendingJob
from tests.crafting.rollout.test_rollout import queued, view


@pytest.mark.parametrize("max_tr", [USUAL, 10 * USUAL])
def test_they_are_no_longer_where_requests_are_longer(max_tr: float) -> None:
    assert times_for(max_tr) == Times(first=60.0, settled=300.0)


def test_where_requests_are_short_all_is_sooner() -> None:
    assert times_for(USUAL / 6) == Times(first=10.0, settled=50.0)
    assert times_for(60.0).settled == 30.0


def rules(max_tr: int) -> SiteRules:
    return SiteRules(limits=Limits(max_pending_requests=1, max_proc=64, max_tr=max_tr), time_resolution=60)


def test_a_place_is_given_up_sooner_where_requests_are_short() -> None:
    """The same scene a hundred seconds after the request was made, in hours and in minutes."""
    for max_tr, given_up in ((64_800, False), (6480, True)):
        wait = max_tr / 2
        late = PendingJob("ours7", 64, max_tr // 10, planned_start=wait)
        seen = view(
            queued(7, 64, max_tr // 10, submitted=-100.0),
            pending=(late,),
            rules=rules(max_tr),
            times=TaskTimes(finished=10, mean=max_tr / 100, longest=max_tr / 100),
            runtime=max_tr / 100,
        )
        assert any(isinstance(each, Withdraw) for each in plan(seen)) == given_up
