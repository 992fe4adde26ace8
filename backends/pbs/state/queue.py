"""The rows of qstat to common rows, and to the state of a site's queue. Pure.

PBS keeps for a job the processors, memory and GPUs of the vnodes where it runs or is planned, and all of them
only if it is exclusive: others run beside it as long as they like (tests/backends/pbs/test_nodes_live.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from adaptor.model import QueueState
from backends.observed.rows import JobRow, ReservationRow
from backends.observed.state import LINGER, Observation
from backends.observed.state import queue_state as state_of
from backends.pbs.jobs import is_considered
from backends.pbs.rows import PbsJob, PbsQueue
from backends.pbs.state.needs import Needs
from backends.pbs.state.nodes import QueueNodes

_State = Literal["waiting", "running", "ending", "suspended", "unknown"]
_STATES: Mapping[str, _State] = {
    **dict.fromkeys("QHWTB", "waiting"),
    **dict.fromkeys("SU", "suspended"),
    "R": "running",
    "E": "ending",
}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read at the instant `now`."""

    now: float
    site: QueueNodes
    jobs: Sequence[PbsJob]
    queues: Mapping[str, PbsQueue] = {}
    reservations: Sequence[ReservationRow] = ()
    """Other than the one that the site itself uses."""
    whole_nodes: bool = False
    default_limit: float | None = None
    """Seconds of a job that names none."""
    loses_age: bool = True


def queue_state(seen: Seen) -> QueueState:
    """What a planner needs to know."""
    needs = Needs(seen.site, whole_nodes=seen.whole_nodes)
    return state_of(
        Observation(
            now=seen.now,
            site=seen.site,
            jobs=[_wanting(job_row(job, seen.now, seen.queues), job, needs) for job in seen.jobs],
            reservations=seen.reservations,
            whole_nodes=seen.whole_nodes,
            default_limit=seen.default_limit,
            loses_age=seen.loses_age,
        )
    )


def job_row(job: PbsJob, now: float, queues: Mapping[str, PbsQueue] = {}) -> JobRow:
    """Of a job that is suspended, what it had is free for others, until it wants that again."""
    state = _STATES.get(job.state, "unknown")
    start = job.start if job.start is not None else now - (job.used or 0.0)
    # PBS leaves a plan standing that it has dropped; one for a time that is past is certainly stale.
    stale = job.planned_start is None or job.planned_start < now - LINGER
    queue = queues.get(job.queue)
    return JobRow(
        id=job.id,
        elements=tuple(f"{job.id}+{n}" if n else job.id for n in range(job.elements)),
        user=job.owner,
        queues=(job.queue,),
        state=state,
        limit=job.limit,
        end=start + job.limit,
        processors=job.processors,
        node_count=job.node_count,
        exclusive=job.exclusive,
        nodes=() if state in ("waiting", "unknown") else (*job.nodes, *job.hosts),
        holds=job.nodes if state in ("running", "ending") else {},
        considered=is_considered(job),
        place=(-queue.priority if queue else 0, -job.priority, job.submitted or now),
        planned_start=None if stale else job.planned_start,
        plan=job.planned_nodes,
    )


def _wanting(row: JobRow, job: PbsJob, needs: Needs) -> JobRow:
    """With what a waiting job needs; one that may only come to nodes of others wants nothing of ours."""
    if row.state != "waiting" or (need := needs.of(job)) is None:
        return row
    if not needs.concern_us(need):
        return msgspec.structs.replace(row, need=need, processors=0, node_count=0)
    return msgspec.structs.replace(row, need=need)
