"""A trace replayed without any job of ours: the schedule, job by job, and how it served them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from adaptor_simulation.cluster import Policy, cluster_of_processors
from adaptor_simulation.files import TraceError, naming
from adaptor_simulation.jobs import Jobs, Seconds
from adaptor_simulation.slowdown import mean_slowdown
from adaptor_simulation.traces.normalise import machine_size, normalise
from adaptor_simulation.traces.repairs import Choices, Repairs
from adaptor_simulation.traces.swf import MOST_PROCESSORS
from adaptor_simulation.traces.swf_read import read_trace


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Over all jobs, without trimming; times in seconds."""

    jobs: int
    mean_wait: float
    median_wait: float
    longest_wait: int
    mean_turnaround: float
    mean_bounded_slowdown: float
    """max(1, turnaround / max(run, 10 s))."""
    mean_bounded_slowdown_per_processor: float
    """max(1, turnaround / (processors × max(run, 10 s)))."""
    waited: int
    """Jobs that did not start in the second in which they were submitted."""
    makespan: int
    """From the first submission to the last end."""
    utilisation: float
    """Utilisation of the processors over the makespan, 0 to 1."""
    utilisation_while_submitting: float
    """Utilisation of the processors from the first to the last submission."""


def measure(jobs: Jobs, starts: Seconds, processors: int) -> Metrics:
    """Metrics of a schedule of at least one job, all of them started."""
    wait, ends = starts - jobs.submit, starts + jobs.run
    turnaround = ends - jobs.submit
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    makespan = int(ends.max()) - first
    return Metrics(
        jobs=len(jobs),
        mean_wait=float(wait.mean()),
        median_wait=float(np.median(wait)),
        longest_wait=int(wait.max()),
        mean_turnaround=float(turnaround.mean()),
        mean_bounded_slowdown=mean_slowdown(wait, jobs.run),
        mean_bounded_slowdown_per_processor=mean_slowdown(wait, jobs.run, jobs.processors),
        waited=int((wait > 0).sum()),
        makespan=makespan,
        utilisation=jobs.area / (processors * makespan),
        utilisation_while_submitting=_area_within(jobs, starts, first, last)
        / (processors * max(last - first, 1)),
    )


def _area_within(jobs: Jobs, starts: Seconds, begin: int, end: int) -> int:
    used = np.minimum(starts + jobs.run, end) - np.maximum(starts, begin)
    return int(np.dot(np.maximum(used, 0), jobs.processors))


class LoadedTrace(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A trace made fit for a machine."""

    name: str
    processors: int
    processors_from: str
    """Source of the number of processors."""
    jobs: Jobs
    repairs: Repairs


class TraceRun(LoadedTrace, frozen=True, eq=False, kw_only=True):
    """A finished replay."""

    policy: Policy
    starts: Seconds
    metrics: Metrics


def load_jobs(
    path: Path, *, processors: int | None = None, choices: Choices | None = None, lenient: bool = False
) -> LoadedTrace:
    """Read and normalise a trace.

    Args:
        processors: of the machine; None: as the trace's header says.

    Raises:
        TraceError: the trace cannot be read or leaves no job, or the machine has no processor.
    """
    trace = read_trace(path, lenient=lenient)
    size, source = (processors, "as asked") if processors is not None else machine_size(trace)
    if not 1 <= size <= MOST_PROCESSORS:
        raise TraceError(f"a machine of {size} processors: it has to have 1 to {MOST_PROCESSORS:,}")
    jobs, repairs = normalise(trace, size, choices)
    return LoadedTrace(name=str(path), processors=size, processors_from=source, jobs=jobs, repairs=repairs)


def run_trace(
    path: Path,
    policy: Policy,
    *,
    processors: int | None = None,
    choices: Choices | None = None,
    lenient: bool = False,
) -> TraceRun:
    """Read, normalise and simulate a trace. Raises TraceError as `load_jobs` does."""
    loaded = load_jobs(path, processors=processors, choices=choices, lenient=lenient)
    starts = replay(loaded.jobs, loaded.processors, policy)
    return TraceRun(
        **{name: getattr(loaded, name) for name in LoadedTrace.__struct_fields__},
        policy=policy,
        starts=starts,
        metrics=measure(loaded.jobs, starts, loaded.processors),
    )


def replay(jobs: Jobs, processors: int, policy: Policy) -> Seconds:
    """The start of each job when nothing else is submitted."""
    cluster = cluster_of_processors(jobs, processors, policy)
    cluster.finish()
    return cluster.starts()


def write_schedule(jobs: Jobs, starts: Seconds, path: Path) -> None:
    """CSV with the columns job, submit, start, end, processors; a line per job in submission order.

    Raises:
        TraceError: the file cannot be written.
    """
    columns = (jobs.number, jobs.submit, starts, starts + jobs.run, jobs.processors)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = ["job,submit,start,end,processors", *("%d,%d,%d,%d,%d" % row for row in rows)]  # noqa: UP031
    with naming(path, TraceError):
        path.write_text("\n".join(lines) + "\n", encoding="ascii")
