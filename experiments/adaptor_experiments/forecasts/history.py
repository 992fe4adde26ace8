"""A trace with the starts of its jobs, as recorded or by a simulated scheduler; its queue at a submission."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor.crafting.futures.run_shares import Ran, RunShares
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.units import counted
from adaptor_experiments.forecasts.trace_queues import TraceFile
from adaptor_simulation.files import TraceError
from adaptor_simulation.jobs import Jobs, Seconds
from adaptor_simulation.trace_run import replay
from adaptor_simulation.traces.normalise import machine_size, normalise
from adaptor_simulation.traces.swf import UNKNOWN, Field, Trace
from adaptor_simulation.traces.swf_read import read_trace

Scheduler = Literal["recorded", "conservative", "easy"]
"""Scheduler of the jobs: the machine's own one, as the trace says, or a simulated one."""
Span = tuple[float, float]
"""From when to when, as shares of the time of a trace."""


class History(msgspec.Struct, frozen=True, eq=False):
    """A trace with its schedule; an entry per job, in the order of submission."""

    jobs: Jobs
    processors: int
    starts: Seconds
    ends: Seconds
    owners: list[str]
    """Owners of the jobs; empty: not known."""
    partitions: Seconds
    held: npt.NDArray[np.bool_]
    """Whether a job waited for another one, which no queue shows: it is not judged."""
    notes: tuple[str, ...] = ()
    """Facts that the trace does not show, a sentence each."""

    @property
    def waits(self) -> Seconds:
        return self.starts - self.jobs.submit


def history_of(file: TraceFile, scheduler: Scheduler) -> History:
    """Raises TraceError: the trace cannot be read, or says no waits where these are asked for."""
    trace = read_trace(file.path, lenient=file.lenient)
    size = machine_size(trace)[0] if file.processors is None else file.processors
    # Numbers of jobs need not be unique or in order: the rows of those that are kept are asked for instead.
    numbered = trace.table.copy()
    numbered[:, Field.NUMBER] = np.arange(len(trace))
    jobs, _ = normalise(msgspec.structs.replace(trace, table=numbered), size, file.choices)
    rows = jobs.number
    notes: list[str] = []
    if scheduler == "recorded":
        waits = trace.column(Field.WAIT)[rows]
        good = _with_waits(trace, waits, notes)
        jobs, rows = jobs.only(good), rows[good]
        starts = jobs.submit + np.floor(waits[good] + 0.5).astype(np.int64)
    else:
        starts = replay(jobs, size, scheduler)
    column = {field: _whole(trace, field, rows) for field in (Field.USER, Field.PARTITION)}
    held = (
        trace.column(Field.PRECEDING_JOB)[rows] > 0
        if scheduler == "recorded"
        else np.zeros(len(rows), np.bool_)
    )
    found = History(
        jobs,
        size,
        starts,
        starts + jobs.run,
        ["" if user == UNKNOWN else str(user) for user in column[Field.USER].tolist()],
        column[Field.PARTITION],
        held,
    )
    return msgspec.structs.replace(found, notes=(*notes, *_notes(found, scheduler)))


def _whole(trace: Trace, field: Field, rows: Seconds) -> Seconds:
    return trace.column(field)[rows].astype(np.int64)


def _with_waits(trace: Trace, waits: npt.NDArray[np.float64], notes: list[str]) -> npt.NDArray[np.bool_]:
    """Jobs whose start is known and not before their submission. Raises TraceError: there are none."""
    unknown, early = waits == UNKNOWN, (waits < 0) & (waits != UNKNOWN)
    good: npt.NDArray[np.bool_] = ~unknown & ~early
    if not good.any():
        told = "no job starts after its submission" if early.any() else "it does not say how long jobs waited"
        raise TraceError(
            f"{trace.name}: {told} (field 3); simulate the starts: --schedulers conservative,easy"
        )
    if unknown.any():
        notes.append(f"{counted(int(unknown.sum()), 'job')} without a known wait left out")
    if early.any():
        notes.append(f"{counted(int(early.sum()), 'job')} left out that started before the submission")
    return good


def _notes(history: History, scheduler: Scheduler) -> Iterator[str]:
    known = set(history.owners)
    if known == {""}:
        yield "no users are named: how long jobs run is learned of all together"
    elif len(known) == 1:
        yield "all jobs are of one user: jobs of others, which hold the rest of the machine, are not in it"
    if scheduler != "recorded":
        return
    if history.held.any():
        yield f"{counted(int(history.held.sum()), 'job')} that waited for another one not judged"
    most = _most_held(history.starts, history.ends, history.jobs.processors)
    if most > history.processors:
        yield (
            f"jobs hold up to {most:,} of {history.processors:,} processors at once: shared nodes, nodes that"
            " came and went, or wrong times; --processors changes the size"
        )


def _most_held(starts: Seconds, ends: Seconds, processors: Seconds) -> int:
    """At any instant."""
    times = np.concatenate([ends, starts])  # of the same second, ends first
    steps = np.concatenate([-processors, processors])
    return int(np.cumsum(steps[np.argsort(times, kind="stable")]).max())


def sample_of(history: History, size: int, seed: int, span: Span | None = None) -> list[int]:
    """Jobs at random, in the order of submission; what lies before the first of them is only learned from.

    Args:
        span: of the time of the trace in which they are submitted; None: all but the first tenth of the jobs.
    """
    draw = np.random.default_rng(seed)
    submit = history.jobs.submit
    later = np.arange(len(submit) // 10, len(submit))
    if span is not None:
        shares = (submit - submit[0]) / max(1, submit[-1] - submit[0])
        later = np.flatnonzero((shares >= span[0]) & (shares <= span[1]))
    later = later[~history.held[later]]
    chosen: list[int] = np.sort(draw.choice(later, min(size, len(later)), replace=False)).tolist()
    return chosen


def queue_at(history: History, job: int) -> tuple[QueueState, dict[str, float]]:
    """The queue at the submission of a job, which comes last in it; the starts of the running jobs."""
    jobs, now = history.jobs, int(history.jobs.submit[job])
    before = np.arange(len(jobs)) < job
    running = np.flatnonzero(before & (history.starts <= now) & (history.ends > now)).tolist()
    waiting = np.flatnonzero(before & (history.starts > now)).tolist()
    limits = {f"{each}": float(jobs.estimate[each]) for each in running}
    queue = QueueState(
        now=float(now),
        processors=history.processors,
        running=tuple(
            RunningJob(
                f"{each}", int(jobs.processors[each]), float(history.starts[each] + jobs.estimate[each])
            )
            for each in running
        ),
        pending=tuple(
            PendingJob(f"{each}", int(jobs.processors[each]), float(jobs.estimate[each]))
            for each in (*waiting, job)
        ),
        owners={f"{each}": owner for each in (*running, *waiting) if (owner := history.owners[each])},
        limits=limits,
    )
    return queue, {f"{each}": float(history.starts[each]) for each in running}


def ran(history: History, order: Seconds) -> Sequence[Ran]:
    """All jobs as `RunShares` learns them, in this order."""
    hashed = RunShares().hashed
    names = {owner: hashed(owner) for owner in set(history.owners)}
    run, limit = history.jobs.run.tolist(), history.jobs.estimate.tolist()
    return [
        Ran(names[history.owners[job]], limit[job], min(1.0, run[job] / limit[job])) for job in order.tolist()
    ]
