"""A trace of which starts and queues are forecast, and a site that begins with its queue at an instant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from adaptor.crafting.futures.run_shares import MOST, RunShares
from adaptor.errors import UsageError
from adaptor_simulation import kernels as k
from adaptor_simulation.cluster import Cluster, cluster_of_processors
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.trace_run import LoadedTrace, load_jobs
from adaptor_simulation.traces.repairs import Choices

PUBLISHED = ("SDSC-SP2-1998", "CTC-SP2", "SDSC-BLUE", "lublin_256_est")
"""Traces of the published tables, by the beginnings of their files."""


class TraceFile(msgspec.Struct, frozen=True):
    """A trace, and how it is read; the same in every experiment of forecasts."""

    path: Path
    processors: int | None = None
    """Processors of its machine; None: as its header says."""
    choices: Choices = Choices()
    lenient: bool = False

    @property
    def name(self) -> str:
        """`CTC-SP2-1996-3` of `CTC-SP2-1996-3.1-cln.swf.gz`."""
        return self.path.name.split(".")[0] or self.path.name

    def load(self) -> LoadedTrace:
        """Raises TraceError: it cannot be read or leaves no job."""
        return load_jobs(self.path, processors=self.processors, choices=self.choices, lenient=self.lenient)


def files_in(folder: Path) -> list[Path]:
    """The traces of the published tables; of a folder that has none of them, all that it has.

    Raises UsageError: it has no trace.
    """
    found = sorted(folder.glob("*.swf*"))
    published = [path for name in PUBLISHED for path in found if path.name.startswith(name)]
    if not found:
        raise UsageError(f"no trace (*.swf, *.swf.gz, *.swf.xz) in {folder}; name one: --trace FILE")
    return published or found


def named_once(files: Sequence[TraceFile]) -> list[TraceFile]:
    """The same. Raises UsageError: two of them would have one name in the tables."""
    known: dict[str, Path] = {}
    for file in files:
        other = known.setdefault(file.name, file.path)
        if other != file.path:
            raise UsageError(f"--trace: {file.path} and {other} have one name; rename one of them")
    return [*dict.fromkeys(files)]


_AHEAD = 5 * 86400  # seconds of the trace after the instant that are simulated, at most


class QueueAt(msgspec.Struct, frozen=True, eq=False):
    """The queue that a bag meets."""

    jobs: Jobs
    """Jobs that run then, with what is left of them; those that wait; and those that come."""
    shares: RunShares
    """Knowledge of an observer of the queue by then."""
    waiting: int
    free: int
    """Processors that no job held."""
    instant: int = 0
    """Seconds of the trace."""


def queues_of(loaded: LoadedTrace, instants: int, seed: int) -> list[QueueAt]:
    """The queue of the trace's machine at a number of instants, drawn in its middle."""
    jobs = loaded.jobs
    cluster = cluster_of_processors(jobs, loaded.processors, "conservative")
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    draw = np.random.default_rng(seed)
    times = np.sort(draw.integers(first + (last - first) // 10, last - (last - first) // 10, instants))
    found = []
    for at in times.tolist():
        cluster.advance(max(at, cluster.now))
        found.append(_queue_at(cluster))
    return found


def _queue_at(cluster: Cluster) -> QueueAt:
    jobs, now = cluster.jobs, cluster.now
    running = cluster.running_rows()[:, k.JOB].tolist()
    waiting = cluster.waiting_rows()[:, k.JOB].tolist()
    coming = np.flatnonzero((jobs.submit > now) & (jobs.submit < now + _AHEAD)).tolist()
    starts = cluster.starts()
    left = jobs.run.copy()
    limit = jobs.estimate.copy()
    for job in running:
        left[job] = max(1, starts[job] + jobs.run[job] - now)
        limit[job] = max(left[job], starts[job] + jobs.estimate[job] - now)
    rows = np.array([*running, *waiting, *coming], np.int64)
    own = Jobs(
        number=jobs.number[rows],
        submit=np.maximum(0, jobs.submit[rows] - now),
        run=left[rows],
        estimate=limit[rows],
        processors=jobs.processors[rows],
    )
    ends = starts + jobs.run
    ended = np.flatnonzero((starts >= 0) & (ends <= now))
    newest = ended[np.argsort(ends[ended])][-MOST:]
    known = (jobs.run[newest] / jobs.estimate[newest]).tolist()
    limits = {str(place): (float(jobs.estimate[job]), float(limit[job])) for place, job in enumerate(running)}
    held = int(jobs.processors[running].sum()) if running else 0
    return QueueAt(own, RunShares.of(known, limits, 0.0), len(waiting), cluster.processors - held, now)
