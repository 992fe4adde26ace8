"""Pilots of which nothing can come any more are taken back, and no others."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.backoff import Holdoff
from adaptor.crafting.situation import SiteRules, TaskShape
from adaptor.decisions.actions import NODES
from adaptor.decisions.failures.shape_backoffs import Failures, ShapeHoldoffs
from adaptor.decisions.pilot_rules import (
    ARRIVAL,
    CUT_OFF,
    LEFT,
    OVERDUE,
    SILENT,
    covering_processors,
    on_arrivals,
    why_forsaken,
    why_overdue,
)
from adaptor.decisions.pilots import Arrival, Pilot
from adaptor.decisions.snapshot import SiteFacts
from adaptor.model import Limits, PendingJob, PilotState, QueueState, Request, RunningJob
from adaptor.resources import TaskSize
from adaptor.shortfalls import Shortfall

NOW = 100_000.0
SHAPE: TaskShape = (TaskSize(processors=3), None)
RUNNING = Pilot(
    id=1,
    state=PilotState.RUNNING,
    request=Request(4, 3600),
    started=NOW - 1000,
    known_since=NOW - 1010,
    first_hello=NOW - 990,
)
QUEUED = Pilot(
    id=2,
    state=PilotState.QUEUED,
    request=Request(4, 3600),
    submitted=NOW - OVERDUE - 10,
    predicted_start=NOW - OVERDUE - 5,
    job="7",
    shape=SHAPE,
)
OWN = PendingJob("7", 4, 3600)


def pilot(base: Pilot, **changes: object) -> Pilot:
    return msgspec.structs.replace(base, **changes)


def site(stuck: int = 0) -> SiteFacts:
    holdoffs = ShapeHoldoffs(by_shape={(SHAPE, ""): Holdoff(failures=stuck)} if stuck else {})
    rules = SiteRules(limits=Limits(max_pending_requests=2, max_proc=16, max_tr=3600))
    return SiteFacts(
        now=NOW, name="here", rules=rules, heuristic="adaptive", queue=None, failures=Failures(stuck=holdoffs)
    )


def queue(*running: RunningJob, pending: tuple[PendingJob, ...] = (OWN,)) -> QueueState:
    return QueueState(now=NOW, processors=16, running=running, pending=pending)


HERE = msgspec.structs.replace(site(), requests=(pilot(RUNNING, id=9, processors=4),))
"""With another pilot, of which workers are heard."""


@pytest.mark.parametrize(("fell_silent", "patience"), [(False, LEFT), (True, SILENT)])
def test_workers_that_left_or_fell_silent(fell_silent: bool, patience: float) -> None:
    gone = pilot(RUNNING, fell_silent=fell_silent, without_worker_since=NOW - patience - 1)
    assert "none of its workers has answered for" in why_forsaken(HERE, gone, NOW)
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
    alone = msgspec.structs.replace(site(), requests=(gone,))
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


WIDE = pilot(
    RUNNING,
    request=Request(16, 3600),
    nodes=("n1", "n2", "n3", "n4"),
    first_hello=NOW - ARRIVAL,
    arrivals={"n1": Arrival(4)},
)
ALL = {node: Arrival(4) for node in WIDE.nodes}


def remarks(found: Pilot, now: float = NOW) -> list[tuple[str, str]]:
    return [(remark.about, remark.text) for remark in on_arrivals(found, now)]


def test_nodes_without_a_worker_are_named_a_minute_after_the_first() -> None:
    assert remarks(WIDE, NOW - 1) == []
    assert remarks(WIDE) == [
        (
            NODES,
            "no worker has called from n2, n3, n4 for 1m after the first: 12 of 16 processors do not count; "
            "the logs in the pilot's folder may say why, else ask the cluster's support about hooks and "
            "prologs that run where a job starts more processes",
        )
    ]
    assert remarks(pilot(WIDE, arrivals=ALL)) == []


def test_a_node_whose_worker_comes_late_is_named_no_more() -> None:
    assert remarks(pilot(WIDE, arrivals=ALL, notes={NODES: "none called"})) == [(NODES, "")]


@pytest.mark.parametrize(
    "changes",
    [
        {"first_hello": None, "arrivals": {}},  # none has called at all: another remark
        {"leaving": "no task is left"},
        {"known_since": NOW - 500},  # an earlier daemon heard them
        {"nodes": ("n1",)},  # the others were given back
        {"nodes": ("n1.hpc.org",)},
        {"nodes": (), "request": Request(4, 3600)},
    ],
)
def test_no_node_is_named_where_none_is_missing(changes: dict[str, object]) -> None:
    assert remarks(pilot(WIDE, **changes)) == []


def test_where_the_scheduler_names_no_nodes_processors_are_compared() -> None:
    ((_, text),) = remarks(pilot(WIDE, nodes=()))
    assert text.startswith("no worker has called for 1m after the first: 12 of 16 processors do not count")


def test_many_nodes_are_not_all_named() -> None:
    ((_, text),) = remarks(pilot(WIDE, nodes=tuple(f"n{number}" for number in range(1, 10))))
    assert "from n2, n3, n4, n5, n6 and 3 more for 1m" in text


def test_a_node_that_gave_less_is_named_once() -> None:
    less = {**ALL, "n2": Arrival(4, (Shortfall("processors", 4, 2, "affinity"),))}
    assert remarks(pilot(WIDE, arrivals=less)) == [
        (
            "n2",
            "n2 gave 2 of 4 processors (affinity): tasks use only these, and the rest is paid for and idle. "
            "Show this to the cluster's support: a job has more than the steps in it (Slurm: "
            "TaskPluginParam; PBS: hooks)",
        )
    ]
    assert remarks(pilot(WIDE, arrivals=less, notes={"n2": "gave less"})) == []


@given(
    p=st.integers(1, 64),
    came=st.lists(st.integers(1, 16), min_size=1, max_size=8),
    left=st.integers(0, 8),
    age=st.floats(0, 3600),
)
def test_processors_cover_with_a_worker_or_for_a_minute(
    p: int, came: list[int], left: int, age: float
) -> None:
    arrivals = {f"n{number}": Arrival(count) for number, count in enumerate(came)}
    there = sum(came[left:])
    found = covering_processors(
        pilot(RUNNING, request=Request(p, 3600), first_hello=NOW, arrivals=arrivals), there, NOW + age
    )
    assert found == there + (max(0, p - sum(came)) if age < ARRIVAL else 0)
    assert there <= found <= max(p, sum(came))
