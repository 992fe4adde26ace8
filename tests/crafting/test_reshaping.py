"""A withdrawal and a request for the same tasks become one change of the queued request."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from adaptor.crafting.planner import plan, within_rules
from adaptor.crafting.reshaping import reshaped, same_request
from adaptor.crafting.situation import (
    PilotView,
    PlannedAction,
    Reshape,
    SiteState,
    SubmitRequest,
    Withdraw,
    Withhold,
)
from adaptor.crafting.submissions import SubmissionsLeft
from adaptor.model import CraftedRequest, Limits, PendingJob, PilotState, QueueState, Request, RunningJob
from adaptor.resources import TaskSize
from tests.crafting.planner_views import RULES, site, tasks, views
from tests.examples import examples

CHANGING = msgspec.structs.replace(RULES, may_reshape=True)


def waiting(id: int, p: int, tr: int, cpus: int = 1, **other: object) -> PilotView:
    """A queued pilot for tasks of so many processors, which its scheduler knows."""
    shape = (TaskSize(processors=cpus), None)
    return PilotView(
        id=id, state=PilotState.QUEUED, request=Request(p, tr), job=str(id), shape=shape, **other
    )  # fmt: skip


def busy(*pilots: PilotView, needs: float = 1800.0, **other: object) -> SiteState:
    """All 8 processors are held for an hour; 4 tasks wait that need longer than the queued requests."""
    demand = msgspec.structs.replace(tasks(4, runtime=needs), shortest=needs)
    queue = QueueState(
        now=1000,
        processors=8,
        running=(RunningJob("local", 8, 1000 + 3600),),
        pending=tuple(PendingJob(str(pilot.id), pilot.request.p, pilot.request.tr) for pilot in pilots),
    )
    rules = other.pop("rules", CHANGING)
    view = site(demand, pilots=pilots, rules=rules)
    return msgspec.structs.replace(view, queue=queue, **other)


def kinds(decisions: list[PlannedAction]) -> list[tuple[str, int | None]]:
    return [(type(each).__name__, getattr(each, "pilot", None)) for each in decisions]


def test_a_request_that_became_too_short_is_made_longer_in_its_place() -> None:
    decisions = plan(busy(waiting(1, 4, 600)))
    assert kinds(decisions) == [("Reshape", 1)]
    (change,) = decisions
    assert isinstance(change, Reshape)
    assert change.crafted.request == Request(4, 1860)
    assert change.crafted.predicted_start == 1000 + 3600, "planned without the request that it was"
    assert change.crafted.reason.startswith("was 4 × 10m: 10m is too short for every waiting task")


def test_a_request_that_may_shrink_is_another_one() -> None:
    assert same_request(CHANGING, Request(4, 1800, 600), Request(4, 1799, 600))
    assert not same_request(CHANGING, Request(4, 1800, 600), Request(4, 1800, 660))
    assert not same_request(CHANGING, Request(4, 1800, 600), Request(4, 1800))


def test_a_request_that_became_too_short_gets_the_hole_that_comes() -> None:
    """In an hour 4 processors are free for 45 minutes, before a job on all of them."""
    view = busy(waiting(1, 4, 600), needs=1200.0)
    assert view.queue is not None
    end = 1000 + 3600 + 2700
    queue = msgspec.structs.replace(
        view.queue,
        running=(RunningJob("short", 4, 1000 + 3600), RunningJob("long", 4, end)),
        pending=(*view.queue.pending, PendingJob("planned", 8, 3600, planned_start=end)),
    )
    limits = msgspec.structs.replace(CHANGING.limits, max_pending_requests=1)
    rules = msgspec.structs.replace(CHANGING, limits=limits, slot_margin=100, shrink_margin=0)
    view = msgspec.structs.replace(view, queue=queue, rules=rules)
    (change,) = plan(msgspec.structs.replace(view, heuristic="completion"))
    assert isinstance(change, Reshape)
    assert change.crafted.request == Request(4, 2700, 2580)


@pytest.mark.parametrize(
    "pilot",
    [
        waiting(1, 4, 600, fixed=True),
        waiting(1, 4, 600, cpus=2),
        waiting(1, 4, 600, partition="other"),
        msgspec.structs.replace(waiting(1, 4, 600), shape=None),
        msgspec.structs.replace(waiting(1, 4, 600), job=None),
    ],
    ids=["refused before", "of other tasks", "in another partition", "not known", "not yet in the queue"],
)
def test_what_cannot_be_changed_is_withdrawn(pilot: PilotView) -> None:
    assert ("Withdraw", 1) in kinds(plan(busy(pilot)))
    assert "Reshape" not in dict(kinds(plan(busy(pilot))))


def test_where_the_scheduler_changes_nothing_all_is_as_before() -> None:
    view = busy(waiting(1, 4, 600), rules=RULES)
    assert [name for name, _ in kinds(plan(view))] == ["Withdraw", "SubmitRequest"]


def test_the_number_of_whole_nodes_stays() -> None:
    nodes = msgspec.structs.replace(CHANGING, granularity=4)
    assert kinds(plan(busy(waiting(1, 4, 600), rules=nodes))) == [("Reshape", 1)]
    assert ("Withdraw", 1) in kinds(plan(busy(waiting(1, 8, 600), rules=nodes)))


def test_hosts_that_are_bought_one_by_one_are_withdrawn() -> None:
    view = busy(waiting(1, 4, 600))
    paced = msgspec.structs.replace(
        view.demands[0], hosts_counted=True, least_tr=1, most=4, why_most="as its aims say"
    )
    assert ("Withdraw", 1) in kinds(plan(msgspec.structs.replace(view, demands=(paced,))))


def test_what_nothing_needs_is_withdrawn() -> None:
    view = msgspec.structs.replace(busy(waiting(1, 4, 600)), demands=(tasks(0, running=3),))
    assert kinds(plan(view)) == [("Withdraw", 1)]


def asked(p: int, tr: int) -> SubmitRequest:
    demand = msgspec.structs.replace(tasks(4), shortest=60.0)
    return SubmitRequest(CraftedRequest(Request(p, tr), 1000.0, 4, f"asks {p} × {tr}"), demand)


def test_a_planner_that_first_withdraws_is_asked_what_it_would_do_then() -> None:
    view = busy(waiting(1, 4, 600), waiting(2, 2, 600), waiting(3, 1, 600))
    seen: list[tuple[int, ...]] = []

    def planner(left: SiteState) -> list[PlannedAction]:
        ids = tuple(pilot.id for pilot in left.requests)
        seen.append(ids)
        assert left.queue is not None
        assert [job.id for job in left.queue.pending] == [str(id) for id in ids]
        return {
            (2, 3): [Withdraw(2, "for a better one", recraft=True)],
            (3,): [asked(8, 600), asked(2, 1200), asked(1, 60), Withhold("no more")],
        }[ids]

    first = [Withdraw(1, "first", recraft=True)]
    found = list(reshaped(view, first, planner))
    assert seen == [(2, 3), (3,)]
    assert kinds(found) == [("Reshape", 1), ("Reshape", 2), ("SubmitRequest", None), ("Withhold", None)]
    assert [each.crafted.request for each in found[:2]] == [Request(8, 600), Request(2, 1200)]
    assert found[1].crafted.reason == "was 2 × 10m: for a better one; asks 2 × 1200"


def test_a_request_that_is_as_it_should_be_stays() -> None:
    view = busy(waiting(1, 4, 600), waiting(2, 4, 590))
    found = reshaped(view, [Withdraw(1, "a"), Withdraw(2, "b")], lambda _: [asked(4, 600)])
    assert kinds(list(found)) == [("Withdraw", 2), ("Withhold", None)]
    assert same_request(CHANGING, Request(4, 590), Request(4, 600))
    assert not same_request(CHANGING, Request(4, 600), Request(4, 601))


def test_a_change_needs_no_submission_and_no_place() -> None:
    full = Limits(max_pending_requests=1, max_proc=8, max_tr=3600)
    rules = msgspec.structs.replace(CHANGING, limits=full)
    view = busy(waiting(1, 4, 600), rules=rules, submissions=SubmissionsLeft(0))
    change = Reshape(1, asked(4, 1200).crafted, asked(4, 1200).demand)
    assert within_rules(view, [change]) == [change]
    forbidden = msgspec.structs.replace(view, rules=msgspec.structs.replace(rules, may_reshape=False))
    assert within_rules(forbidden, [change]) == []
    assert kinds(plan(busy(waiting(1, 4, 600), rules=rules))) == [("Reshape", 1)]


@given(views())
@examples(300)
def test_no_pilot_is_told_two_things_and_no_limit_is_passed(view: SiteState) -> None:
    rules = msgspec.structs.replace(view.rules, may_reshape=True)
    shape = (view.demands[0].task, None) if view.demands else None
    pilots = tuple(
        msgspec.structs.replace(pilot, job=str(pilot.id), shape=shape) for pilot in view.requests
    )  # fmt: skip
    decisions = plan(msgspec.structs.replace(view, rules=rules, requests=pilots))
    named = [each.pilot for each in decisions if isinstance(each, Withdraw | Reshape)]
    assert len(named) == len(set(named))
    queued = {pilot.id: pilot for pilot in pilots if pilot.state is PilotState.QUEUED}
    issued = sum(isinstance(each, SubmitRequest) for each in decisions)
    assert sum(pilot.state.in_system for pilot in pilots) + issued <= max(
        rules.limits.max_pending_requests, sum(pilot.state.in_system for pilot in pilots)
    )
    for change in decisions:
        if isinstance(change, Reshape):
            assert queued[change.pilot].shape == change.demand.shape
            assert change.crafted.request.p <= rules.limits.max_proc
            assert change.crafted.request.tr <= rules.limits.max_tr
            assert not same_request(rules, queued[change.pilot].request, change.crafted.request)
    if any(demand.waiting for demand in view.demands):
        assert decisions, "something is decided, or said"
