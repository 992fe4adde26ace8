"""The recorded queue as a planner sees it."""

from __future__ import annotations

import math

import msgspec
import pytest

from adaptor.resources import Need
from adaptor_gridengine.parse import GridJob, Pe
from adaptor_gridengine.state import GridSeen, job_row, queue_state, state_of
from backends.base import PartitionClosed
from tests.gridengine.recorded_cell import GIB, NOW, seen


def test_an_idle_cell_is_free() -> None:
    cell = seen("1-idle-qstat.xml")
    state = queue_state(cell, cell.queue(None))
    assert (state.processors, state.running, state.pending) == (16, (), ())
    assert state.default_memory == GIB
    assert {(node.processors, node.memory) for node in state.nodes} == {(4, 4 * GIB)}


def test_running_jobs_hold_slots_of_hosts_in_service() -> None:
    cell = seen()
    state = queue_state(cell, cell.queue("all.q"))
    assert state.processors == 12, "a host is disabled"
    running = {job.id: job for job in state.running}
    assert {id: job.processors for id, job in running.items()} == {
        "17": 5,
        "11": 4,
        "13.1": 1,
        "13.3": 1,
        "13.5": 1,
    }
    (part,) = running["11"].parts
    assert (part.node, part.processors, part.memory) == ("n4", 4, 2 * GIB)
    assert running["11"].end == pytest.approx(NOW + 600 - 31)


def test_jobs_in_other_queues_of_a_host_hold_what_the_host_shares() -> None:
    cell = seen()
    assert sum(job.processors for job in queue_state(cell, cell.queue("short.q")).running) == 16
    own = [msgspec.structs.replace(each, host_free=None) for each in cell.instances]
    apart = msgspec.structs.replace(cell, instances=own)
    running = queue_state(apart, apart.queue("short.q")).running
    assert [(job.id, job.processors) for job in running if job.processors] == [("17", 1)]


def test_slots_that_nobody_shows_are_held() -> None:
    cell = msgspec.structs.replace(seen(), jobs=())
    (hidden,) = queue_state(cell, cell.queue("all.q")).running
    assert (hidden.id, hidden.processors, hidden.end) == ("hidden", 12, math.inf)


def test_waiting_jobs_stand_in_the_order_of_their_priority() -> None:
    cell = seen()
    pending = queue_state(cell, cell.queue("all.q")).pending
    assert [job.id for job in pending][:4] == ["16", "18", "15", "20.1"]
    assert len(pending) == 43, "an array counts with all its tasks; held jobs and those in error do not"
    assert pending[0].need == Need(chunks=14, processors=1, memory=GIB)
    assert pending[1].need == Need(chunks=1, processors=2, memory=18 * GIB)


def test_a_job_for_named_queues_waits_there_only() -> None:
    cell = seen()
    row = job_row(next(job for job in cell.jobs if job.name == "dep"), cell, cell.nodes("all.q"))
    assert row.queues == ("all.q", "short.q")
    need = next(job for job in queue_state(cell, cell.queue("all.q")).pending if job.id == "15").need
    assert need is not None
    assert need.nodes is None, "of all.q it may have n1 only, of short.q any host"


def test_a_job_that_is_too_long_for_a_queue_does_not_wait_there() -> None:
    cell = seen()
    long = GridJob(number="30", name="long", owner="bob", state="qw", limit=3600, slots=2, pe="mpi")
    assert job_row(long, cell, cell.nodes("short.q")).queues == ("all.q",)


def test_a_fixed_number_of_slots_on_each_host_is_a_need_of_such_parts() -> None:
    pe = Pe(name="by4", slots=99, rule="4", controls=True)
    queues = {
        name: msgspec.structs.replace(queue, pes=("by4",)) for name, queue in seen().cell.queues.items()
    }
    cell = seen(pes={"by4": pe}, queues=queues)
    job = GridJob(number="30", name="x", owner="bob", state="qw", limit=600, slots=8, pe="by4")
    state = queue_state(_with(cell, job), cell.queue("all.q"))
    assert [each.need for each in state.pending] == [Need(chunks=2, processors=4, memory=4 * GIB)]


def _with(cell: GridSeen, *jobs: GridJob) -> GridSeen:
    return msgspec.structs.replace(cell, jobs=jobs)


def test_a_reservation_is_kept() -> None:
    cell = seen(reservations=True)
    first = queue_state(cell, cell.queue("short.q")).pending[0]
    assert (first.id, first.processors, first.tr) == ("reservation 2", 6, 600)
    assert first.planned_start is not None


@pytest.mark.parametrize(
    ("letters", "state"),
    [
        ("qw", "waiting"),
        ("hqw", "waiting"),
        ("Rq", "waiting"),
        ("EhRqw", "waiting"),
        ("r", "running"),
        ("t", "running"),
        ("Rr", "running"),
        ("dr", "ending"),
        ("dRt", "ending"),
        ("s", "suspended"),
        ("tS", "suspended"),
        ("T", "suspended"),
        ("z", "unknown"),
        ("P", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_letters_of_states(letters: str, state: str) -> None:
    job = GridJob(number="1", name="x", owner="bob", state=letters)
    assert state_of(job) == state


def test_a_state_that_is_not_known_is_told() -> None:
    cell = _with(seen(), GridJob(number="1", name="x", owner="bob", state="P"))
    (told,) = queue_state(cell, cell.queue(None)).unknown
    assert told.startswith("unknown job state 'P'")


def test_a_queue_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(PartitionClosed, match=r"no queue x; there are: all\.q, short\.q"):
        seen().queue("x")
    others = {f"{name}2": queue for name, queue in seen().cell.queues.items()}
    with pytest.raises(PartitionClosed, match="several queues: set `partition`"):
        seen(queues=others).queue(None)
