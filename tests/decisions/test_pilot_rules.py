"""Pilots of which nothing can come any more are taken back, and no others."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.backoff import Holdoff
from adaptor.crafting.situation import SiteRules, TaskShape
from adaptor.decisions.pilot_rules import CUT_OFF, LEFT, OVERDUE, SILENT, why_forsaken, why_overdue
from adaptor.decisions.shape_backoffs import ShapeHoldoffs
from adaptor.decisions.snapshot import PilotFacts, SiteFacts
from adaptor.model import Limits, PendingJob, PilotState, QueueState, Request, RunningJob
from adaptor.resources import TaskSize

NOW = 100_000.0
SHAPE: TaskShape = (TaskSize(processors=3), None)
RUNNING = PilotFacts(
    id=1,
    state=PilotState.RUNNING,
    request=Request(4, 3600),
    started=NOW - 1000,
    known_since=NOW - 1010,
    first_hello=NOW - 990,
)
QUEUED = PilotFacts(
    id=2,
    state=PilotState.QUEUED,
    request=Request(4, 3600),
    submitted=NOW - OVERDUE - 10,
    predicted_start=NOW - OVERDUE - 5,
    job="7",
    shape=SHAPE,
)
OWN = PendingJob("7", 4, 3600)


def pilot(base: PilotFacts, **changes: object) -> PilotFacts:
    return msgspec.structs.replace(base, **changes)


def site(stuck: int = 0) -> SiteFacts:
    holdoffs = ShapeHoldoffs(by_shape={(SHAPE, ""): Holdoff(failures=stuck)} if stuck else {})
    rules = SiteRules(limits=Limits(max_pending_requests=2, max_proc=16, max_tr=3600))
    return SiteFacts(name="here", rules=rules, heuristic="adaptive", queue=None, stuck=holdoffs)


def queue(*running: RunningJob, pending: tuple[PendingJob, ...] = (OWN,)) -> QueueState:
    return QueueState(now=NOW, processors=16, running=running, pending=pending)


HERE = msgspec.structs.replace(site(), pilots=(pilot(RUNNING, id=9, processors=4),))
"""With another pilot, of which workers are heard."""


@pytest.mark.parametrize(("fell_silent", "patience"), [(False, LEFT), (True, SILENT)])
def test_workers_that_left_or_fell_silent(fell_silent: bool, patience: float) -> None:
    gone = pilot(RUNNING, fell_silent=fell_silent, without_worker_since=NOW - patience - 1)
    assert "none of its workers has been heard of for" in why_forsaken(HERE, gone, NOW)
    assert why_forsaken(HERE, pilot(gone, without_worker_since=NOW - patience), NOW) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"without_worker_since": None},
        {"first_hello": None},  # its workers have yet to call
        {"leaving": "cancelled by its user"},
        {"node": "n1"},  # donated nodes have a rule of their own
    ],
)
def test_pilots_of_which_something_may_come(changes: dict[str, object]) -> None:
    gone = pilot(RUNNING, without_worker_since=NOW - 10 * SILENT)
    assert why_forsaken(HERE, gone, NOW)
    assert why_forsaken(HERE, pilot(gone, **changes), NOW) == ""


def test_after_a_restart_workers_have_time_to_call() -> None:
    found = pilot(RUNNING, first_hello=None, known_since=NOW - 200, without_worker_since=NOW - 200)
    assert why_forsaken(HERE, found, NOW) == ""
    assert why_forsaken(HERE, found, NOW + SILENT)


def test_where_no_worker_of_the_site_is_heard_the_network_may_be_cut() -> None:
    gone = pilot(RUNNING, fell_silent=True, without_worker_since=NOW - CUT_OFF)
    alone = msgspec.structs.replace(site(), pilots=(gone,))
    assert why_forsaken(HERE, gone, NOW)
    assert why_forsaken(alone, gone, NOW) == ""
    assert why_forsaken(alone, gone, NOW + 1)


def test_a_request_with_room_that_does_not_start() -> None:
    why = why_overdue(site(), queue(), QUEUED)
    assert why == "the queue has room for it, but the scheduler has not started it for 15m 5s"


@pytest.mark.parametrize(
    "seen",
    [
        queue(RunningJob("1", 13, NOW + 900)),  # no room now
        queue(pending=(PendingJob("6", 16, 900, NOW + 60), OWN)),  # none for its whole tr
        queue(pending=()),  # the scheduler does not consider it now
        None,
    ],
)
def test_a_request_that_waits_for_a_reason(seen: QueueState | None) -> None:
    assert why_overdue(site(), seen, QUEUED) == ""


@pytest.mark.parametrize(
    "changes",
    [{"predicted_start": NOW - OVERDUE}, {"leaving": "no task waits"}, {"state": PilotState.RUNNING}],
)
def test_a_request_that_is_not_overdue(changes: dict[str, object]) -> None:
    assert why_overdue(site(), queue(), pilot(QUEUED, **changes)) == ""


def test_patience_doubles_with_each_withdrawal() -> None:
    assert why_overdue(site(stuck=1), queue(), QUEUED) == ""
    assert why_overdue(
        site(stuck=1), queue(), pilot(QUEUED, predicted_start=NOW - 2 * OVERDUE - 1, submitted=0.0)
    )
