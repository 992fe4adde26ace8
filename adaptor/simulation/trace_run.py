"""A trace replayed without any job of ours: the schedule, job by job."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adaptor.simulation.cluster import Policy, cluster_of_processors
from adaptor.simulation.errors import TraceError
from adaptor.simulation.files import naming
from adaptor.simulation.jobs import Jobs, Seconds
from adaptor.simulation.metrics import Metrics, measure
from adaptor.simulation.traces.normalise import machine_size, normalise
from adaptor.simulation.traces.repairs import Choices, Repairs
from adaptor.simulation.traces.swf import MOST_PROCESSORS
from adaptor.simulation.traces.swf_read import read_trace


class LoadedTrace(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A trace made fit for a machine."""

    name: str
    processors: int
    processors_from: str
    """Where the number of processors is from."""
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
