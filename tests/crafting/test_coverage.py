"""What the pilots in the system are expected to take."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from adaptor.crafting.coverage import coverage
from adaptor.crafting.situation import PilotView, SiteRules, SiteState
from adaptor.model import Limits, PilotState, Request
from adaptor.resources import Room, TaskSize

from .planner_views import queued, running, site, tasks, views


def uncovered(view: SiteState) -> list[int]:
    return coverage(view).uncovered


def test_without_pilots_nothing_is_covered() -> None:
    assert uncovered(site(tasks(100), tasks(5, cpus=4))) == [100, 5]


def test_a_queued_pilot_takes_what_fits_into_its_time() -> None:
    """(630 − 30) / 60 = 10 tasks on each of 4 processors."""
    assert uncovered(site(tasks(100), pilots=(queued(1, 4, tr=630),))) == [60]


def test_a_queued_pilot_takes_a_task_per_slot_at_least() -> None:
    assert uncovered(site(tasks(100, runtime=9999), pilots=(queued(1, 4, tr=60),))) == [96]


def test_a_request_that_is_being_submitted_counts_like_a_queued_one() -> None:
    pilot = PilotView(id=1, state=PilotState.SUBMITTING, request=Request(4, 630))
    assert uncovered(site(tasks(100), pilots=(pilot,))) == [60]


def test_a_running_pilot_takes_what_fits_into_the_time_it_has_left() -> None:
    assert uncovered(site(tasks(100), pilots=(running(1, 4, left=150),))) == [92]
    assert uncovered(site(tasks(100), pilots=(running(1, 4, left=80),))) == [96]
    assert uncovered(site(tasks(100), pilots=(running(1, 4, left=50),))) == [100]
    assert uncovered(site(tasks(100), pilots=(running(1, 4, left=-50),))) == [100]


def test_a_slot_that_runs_a_task_takes_the_rounds_after_the_current_one() -> None:
    """2.5 rounds are left: two for the idle slot, two after the current one for each of the others."""
    assert uncovered(site(tasks(100, running=3), pilots=(running(1, 4, left=150),))) == [92]


def test_a_pilot_that_has_just_started_covers_what_it_was_crafted_for() -> None:
    """256 tasks of 10 minutes on 2 slots: no second request while the first rounds run."""
    tr = 128 * 600 + 30
    for gone in (1, 29, 40, 599):
        held = 2 if gone > 1 else 0
        pilot = running(1, 2, left=tr - gone)
        assert uncovered(site(tasks(256 - held, runtime=600, running=held), pilots=(pilot,))) == [0]


def test_tasks_that_run_in_a_pilot_near_its_end_take_nothing_from_the_others() -> None:
    pilots = (running(1, 20, left=10), running(2, 4, left=150))
    assert uncovered(site(tasks(100, running=20), pilots=pilots)) == [92]


def test_only_the_workers_that_are_still_there_count() -> None:
    assert uncovered(site(tasks(100), pilots=(running(1, 4, left=150, workers=1),))) == [98]
    assert uncovered(site(tasks(100), pilots=(running(1, 4, left=150, workers=0),))) == [100]


def test_a_running_pilot_whose_end_is_not_known_ends_after_tr() -> None:
    pilot = PilotView(id=1, state=PilotState.RUNNING, request=Request(4, 630), started=520)
    assert uncovered(site(tasks(100), pilots=(pilot,))) == [92]


def test_ended_pilots_take_nothing() -> None:
    pilot = PilotView(id=1, state=PilotState.COMPLETED, request=Request(4, 630))
    assert uncovered(site(tasks(100), pilots=(pilot,))) == [100]


def test_a_pilot_serves_every_demand_that_fits_on_it_the_neediest_first() -> None:
    """10 tasks of one processor take 10/40 of the pilot, the rest is 7 tasks of 4 processors."""
    view = site(tasks(10), tasks(100, cpus=4), pilots=(queued(1, 4, tr=630),))
    assert uncovered(view) == [0, 93]


def test_a_task_does_not_fit_on_a_narrower_pilot() -> None:
    assert uncovered(site(tasks(10, cpus=4), pilots=(queued(1, 3, tr=630),))) == [10]


def test_whole_nodes_hold_whole_tasks_only() -> None:
    rules = SiteRules(limits=Limits(max_pending_requests=3, max_proc=64, max_tr=3600), granularity=16, pad=0)
    view = site(tasks(100, cpus=3), pilots=(queued(1, 32, tr=60),), rules=rules)
    assert uncovered(view) == [90]


def test_a_queued_pilot_is_needless_when_those_before_it_take_all_at_once() -> None:
    pilots = (queued(1, 4), queued(2, 4), queued(3, 4))
    assert coverage(site(tasks(9), pilots=pilots)).needless == []
    assert coverage(site(tasks(8), pilots=pilots)).needless == [3]
    assert coverage(site(tasks(4), pilots=pilots)).needless == [2, 3]
    assert coverage(site(tasks(0), pilots=pilots)).needless == [1, 2, 3]


def test_that_many_rounds_would_fit_makes_no_pilot_needless() -> None:
    pilots = (queued(1, 4, tr=3600), queued(2, 4, tr=3600))
    view = site(tasks(20, runtime=1), pilots=pilots)
    assert coverage(view).uncovered == [0]
    assert coverage(view).needless == []


def test_only_idle_slots_of_running_pilots_make_a_queued_one_needless() -> None:
    pilots = (running(1, 4, left=3000), queued(2, 4))
    assert coverage(site(tasks(3, running=4), pilots=pilots)).needless == []
    assert coverage(site(tasks(3, running=1), pilots=pilots)).needless == [2]


def test_a_pilot_that_was_made_for_a_task_which_the_others_leave_is_not_needless() -> None:
    """Two tasks of two processors and one of three: in rounds, those before it leave one of the former."""
    pilots = (running(0, 2, left=1), queued(1, 4, tr=1), queued(2, 1, tr=1), queued(3, 1, tr=1))
    rules = SiteRules(limits=Limits(max_pending_requests=5, max_proc=4, max_tr=1))
    demands = (tasks(0, running=1, runtime=1), tasks(2, runtime=0.5, cpus=2), tasks(1, runtime=1, cpus=3))
    assert coverage(site(*demands, pilots=pilots, rules=rules)).uncovered[1] == 1
    made = (*pilots, queued(4, 2, tr=1))
    assert 4 not in coverage(site(*demands, pilots=made, rules=rules)).needless


def test_a_pilot_on_which_no_waiting_task_fits_is_needless() -> None:
    assert coverage(site(tasks(3, cpus=4), pilots=(queued(1, 2),))).needless == [1]


@given(views())
def test_no_more_is_uncovered_than_waits(view: SiteState) -> None:
    for demand, left in zip(view.demands, uncovered(view), strict=True):
        assert 0 <= left <= demand.waiting


@given(views())
def test_of_one_demand_each_further_pilot_covers_what_it_can(view: SiteState) -> None:
    """Against a formula: the sum over the pilots of slots × rounds."""
    for demand in view.demands:
        alone = SiteState(
            now=view.now, queue=view.queue, rules=view.rules, heuristic=view.heuristic,
            requests=tuple(each for each in view.requests if each.state is not PilotState.RUNNING),
            demands=(demand,),
        )  # fmt: skip
        places = 0
        for pilot in alone.requests:
            nodes, rest = divmod(pilot.request.p, view.rules.granularity)
            per_node, wide = view.rules.granularity // demand.task.processors, demand.task.processors
            slots = nodes * per_node + rest // wide if per_node else pilot.request.p // wide
            places += slots * max(1, int((pilot.request.tr - view.rules.pad + 1e-6) / demand.runtime))
        assert uncovered(alone) == [max(0, demand.waiting - places)]


@pytest.mark.parametrize(
    ("rooms", "left"),
    [
        ((Room(1, 1 << 30),) * 4, 2),  # four nodes of which each has one processor for the pilot
        ((Room(4, 4 << 30),), 1),
        ((), 1),  # what its workers have is not known yet
    ],
)
def test_larger_tasks_than_a_pilot_was_made_for_fit_as_its_workers_have_room(
    rooms: tuple[Room, ...], left: int
) -> None:
    pilot = msgspec.structs.replace(
        running(1, 4, left=100), shape=(TaskSize(processors=1), None), rooms=rooms
    )
    assert uncovered(site(tasks(2, cpus=4), pilots=(pilot,))) == [left]
