"""The rows of qstat to common rows, and to the state of a site's queue. Pure.

PBS keeps for a job the processors, memory and GPUs of the vnodes where it runs or is planned, and all of them
only if it is exclusive: others run next to it (tests/backends/pbs/test_nodes_live.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from adaptor.model import Allowed, QueueState
from adaptor.reports import TURN, JobReport, JobState
from adaptor.resources import Need
from backends.observed.rows import NOTHING, JobRow, ReservationRow
from backends.observed.state import LINGER, KnownJobs, Observation
from backends.observed.state import queue_state as state_of
from backends.pbs.openpbs.jobs import GPU_TYPES
from backends.pbs.reasons import is_considered, never, wait_of
from backends.pbs.rows import WAITING, PbsChunk, PbsJob, PbsQueue
from backends.pbs.state.nodes import QueueNodes

_Places = frozenset[str] | None


class PbsNeeds:
    """Needs of the jobs at one site. Jobs that may run on the same machines share one set of them."""

    def __init__(self, site: QueueNodes, *, whole_nodes: bool = False) -> None:
        """`whole_nodes`: whether a node that is partly in use counts as wholly so."""
        self._site = site
        self._whole_nodes = whole_nodes
        self._all = frozenset(node.name for node in site.machines)
        self._ours = frozenset(node.name for node in site.machines if node.ours)
        self._places: dict[tuple[str, tuple[tuple[str, str], ...]], _Places] = {}
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        self._known: dict[tuple[object, ...], Need | None] = {}

    @property
    def under(self) -> tuple[object, ...]:
        """All that decides what a job needs besides the job itself."""
        site = self._site
        return site.machines, site.members, site.traits, site.exclusive, self._whole_nodes

    def of(self, job: PbsJob) -> Need | None:
        """Needs of a job; None: it shows none, or none that can be understood. Equal jobs share one need."""
        key = (job.queue, job.chunks, job.placing, job.exclusive)
        if key not in self._known:
            self._known[key] = self._made(job)
        return self._known[key]

    def _made(self, job: PbsJob) -> Need | None:
        chunks = (_packed(job.chunks),) if job.placing == "pack" and job.chunks else job.chunks
        needs = [self._need(job, chunk) for chunk in chunks if chunk.count]
        if not needs:
            return None
        first, *others = needs
        return msgspec.structs.replace(first, others=tuple(others))

    def concern_us(self, need: Need) -> bool:
        """Whether some of it may come to nodes of ours."""
        return any(each.nodes is None or each.nodes & self._ours for each in (need, *need.others))

    def _need(self, job: PbsJob, chunk: PbsChunk) -> Need:
        traits = dict(chunk.traits)
        key = (job.queue, chunk.traits)
        if key not in self._places:
            self._places[key] = self._find(job.queue, dict(chunk.traits))
        return Need(
            chunks=chunk.count,
            processors=chunk.each.processors,
            memory=chunk.each.memory,
            gpus=sum(count for _, count in chunk.each.gpus),
            gpu_type=next((traits[name] for name in GPU_TYPES if name in traits), ""),
            scatter=job.placing == "scatter",
            whole_nodes=job.exclusive or self._whole_nodes or self._site.exclusive,
            nodes=self._places[key],
        )

    def _find(self, queue: str, traits: Mapping[str, str]) -> _Places:
        """Nodes for jobs of a queue with these traits; every node if none has them: PBS may know the resource
        otherwise."""
        found = self._site.members.get(queue, self._all) & self._all
        for trait in traits.items():
            found &= self._site.traits.get(trait, frozenset())
        return None if found in (self._all, frozenset()) else self._sets.setdefault(found, found)


def _packed(chunks: tuple[PbsChunk, ...]) -> PbsChunk:
    """All on one machine are as one."""
    traits = sorted({trait for chunk in chunks for trait in chunk.traits})
    return PbsChunk(each=sum((chunk.each * chunk.count for chunk in chunks), NOTHING), traits=tuple(traits))


_State = Literal["waiting", "running", "ending", "suspended", "unknown"]
_STATES: Mapping[str, _State] = {
    **dict.fromkeys("QHWTB", "waiting"),
    **dict.fromkeys("SU", "suspended"),
    "R": "running",
    "E": "ending",
}


def queue_state(
    now: float,
    site: QueueNodes,
    jobs: Sequence[PbsJob],
    queues: Mapping[str, PbsQueue],
    reservations: Sequence[ReservationRow] = (),
    *,
    whole_nodes: bool = False,
    known: KnownJobs | None = None,
    allowed: Allowed | None = None,
) -> QueueState:
    """State of the queue at `now`, for planners.

    Args:
        reservations: other than the one that the site itself uses.
        known: rows that the last look made.
    """
    needs, known = PbsNeeds(site, whole_nodes=whole_nodes), known or KnownJobs()
    return state_of(
        Observation(
            now=now,
            site=site,
            jobs=known.rows.of(
                lambda job, _: _wanting(job_row(job, now, queues), job, needs),
                jobs,
                [None if _is_timeless(job) else now for job in jobs],
                under=(queues, needs.under),
            ),
            known=known,
            reservations=reservations,
            whole_nodes=whole_nodes,
            allowed=allowed or Allowed(),
        )
    )


def _is_timeless(job: PbsJob) -> bool:
    """Whether its row is the same whenever it is made."""
    if job.start is None and _STATES.get(job.state) != "waiting":
        return False
    return job.submitted is not None and job.planned_start is None


def job_row(job: PbsJob, now: float, queues: Mapping[str, PbsQueue] = {}) -> JobRow:
    """The row of a job. The amounts of a suspended job are free for others, until it wants them again."""
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
        end=math.inf if state == "waiting" else start + job.limit,
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


def _wanting(row: JobRow, job: PbsJob, needs: PbsNeeds) -> JobRow:
    """The row with the needs of a waiting job; one that may only come to nodes of others wants nothing of
    ours."""
    if row.state != "waiting" or (need := needs.of(job)) is None:
        return row
    if not needs.concern_us(need):
        return msgspec.structs.replace(row, need=need, processors=0, node_count=0)
    return msgspec.structs.replace(row, need=need)


_RAN = re.compile(r"(?<=^Job run at )([^(]*?) on (?:\+?\([^()]*(?:\)|$))+")
"""The comment of a running job: its start, and all chunks that it got, which may be hundreds."""


def sentence(comment: str) -> str:
    """The comment of a job without the list of its chunks."""
    return _RAN.sub(r"\1", comment)


def was_put_back_to_yield(job: PbsJob, state: JobState) -> bool:
    """Whether a job has ended for us that waits to run again. `state`: what the exit status means."""
    return job.state in WAITING and bool(state.ended)


def report_of(job: PbsJob, state: JobState) -> JobReport:
    """Args: state: what the job's letter and exit status mean."""
    put_back = was_put_back_to_yield(job, state)
    waits = job.state in WAITING and not put_back
    return JobReport(
        id=job.id,
        tag=job.tag,
        state=state,
        start=None if waits else job.start,
        end=job.end if state.ended else None,
        planned_start=job.planned_start if waits else None,
        granted=None if waits or math.isinf(job.limit) else job.limit,
        processors=None if job.request is None else job.request.p,
        limit=None if job.request is None else job.request.tr,
        nodes=job.hosts,
        reason="" if put_back else sentence(job.comment),  # of a job put back: why it does not start again
        never=never(job) if waits else "",
        wait=wait_of(job) if waits else TURN,
        held=None if waits else held_by(job),
    )


def held_by(job: PbsJob) -> int | None:
    """Processors that a job holds, or held, by its `exec_vnode`; None: it tells none."""
    return sum(amounts.processors for amounts in job.nodes.values()) or None
