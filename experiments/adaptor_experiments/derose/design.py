"""What the experiment is made of: traces, kinds of grid job, and what is drawn at random."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np

from adaptor.crafting.heuristics import HeuristicName
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.kernels import Array

Heterogeneity = Literal[1, 2, 4]

TASKS = (100, 1000, 10_000, 100_000)
MEANS = (100, 1000, 10_000)
HETEROGENEITIES: tuple[Heterogeneity, ...] = get_args(Heterogeneity)
MAX_PENDING = (1, 2, 3, 4, 5, 6)
HEURISTICS: tuple[HeuristicName, ...] = ("static", "adaptive")
"""Those of the paper."""
_HALF_WIDTH: dict[Heterogeneity, float] = {1: 0.0, 2: 0.5, 4: 0.75}
"""Of the uniform distribution, in means (Table 2)."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A trace of Table 1, on a machine of so many processors."""

    key: str
    """Names it in files and options."""
    title: str
    file: str
    """Without `.swf.gz`."""
    processors: int
    paper: float | None
    """The average speedup of Table 3; None where the paper has no such machine."""
    requests: int | None = None
    """Of Table 1."""
    load: float | None = None
    """The offered load of Table 1, in parts of 1."""
    period: str = ""
    """Of Table 1."""
    reason: str = ""
    """Why ours are not the numbers of Table 1."""
    speedup_reason: str = ""
    """Why ours is not the number of Table 3."""
    own: Path | None = None
    """The file, where the trace is not one of `WORKLOADS`."""
    content: int = 0
    """Checksum of that file: its samples are not mistaken for those of another one."""


WORKLOADS = (
    Workload(
        key="sdsc-sp2",
        title="SDSC SP2",
        file="SDSC-SP2-1998-4.2-cln",
        processors=128,
        paper=2.05,
        requests=73_496,
        load=0.72,
        period="April 1998 to December 2000",
        reason="73,496 are all lines of the log, which was cleaned since, and it ends in April 2000. Why its"
        " load is higher is not known: whatever is left out lowers it",
        speedup_reason="the load: at the paper's (--stretch 1.146, 40 samples) 1.80 [1.45, 2.59]",
    ),
    Workload(
        key="sdsc-blue",
        title="SDSC BlueHorizon",
        file="SDSC-BLUE-2000-4.2-cln",
        processors=1152,
        paper=2.37,
        requests=250_440,
        load=0.73,
        period="April 2000 to December 2000",
        reason="250,440 are all lines of the log, which was cleaned since, and it lasts until December 2002",
        speedup_reason="none needed: the interval holds the paper's",
    ),
    Workload(
        key="ctc-sp2-512",
        title="CTC SP2 (512)",
        file="CTC-SP2-1996-3.1-cln",
        processors=512,
        paper=14.74,
        requests=79_302,
        load=0.54,
        speedup_reason="not known, see the remarks: what the paper's text suggests contradicts its 1.83",
        period="July 1996 to July 1997",
        reason="79,302 are all lines of the log, which was cleaned since",
    ),
    Workload(
        key="ctc-sp2-338",
        title="CTC SP2 (338)",
        file="CTC-SP2-1996-3.1-cln",
        processors=338,
        paper=None,
        reason="not in the paper: the batch partition on which the jobs of the trace ran",
    ),
)


def trace_files(workloads: Sequence[Workload], folder: Path) -> dict[Workload, Path]:
    """Where each trace is. Raises ReplayError: one is not there."""
    paths = {each: each.own or folder / f"{each.file}.swf.gz" for each in workloads}
    for workload, path in paths.items():
        if not workload.own and not path.is_file():
            raise ReplayError(
                f"{path}: no such trace; `adaptor trace fetch {workload.file} --folder {folder}` gets it"
            )
    return paths


class JobType(msgspec.Struct, frozen=True, order=True):
    """A kind of grid job (Table 2)."""

    tasks: int
    mean: int
    """Of the task runtimes, in seconds."""
    heterogeneity: Heterogeneity

    def runtimes(self, seed: int, sample: int) -> Array:
        """Uniform around the mean, in whole seconds; the same for every trace, limit and heuristic."""
        draw = np.random.default_rng([seed, sample, self.tasks, self.mean, self.heterogeneity])
        half = _HALF_WIDTH[self.heterogeneity] * self.mean
        drawn = np.rint(draw.uniform(self.mean - half, self.mean + half, self.tasks))
        return np.maximum(1, drawn).astype(np.int64)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All on which a result depends, but for the trace and the number of the sample."""

    seed: int = 1
    tasks: tuple[int, ...] = TASKS
    means: tuple[int, ...] = MEANS
    heterogeneities: tuple[Heterogeneity, ...] = HETEROGENEITIES
    max_pending: tuple[int, ...] = MAX_PENDING
    heuristics: tuple[HeuristicName, ...] = HEURISTICS
    max_tr: int = 64_800
    """The lowest of the greatest requested times of the traces (§4.4)."""
    initial_tr: float = 3600.0
    growth_factor: int = 2
    """The paper says no more than that it is an integer."""
    stretch: float = 1.0
    """Factor of the local jobs' interarrival times; the paper has 0.7 for CTC SP2 (§4.4)."""
    static_maximum: bool = False
    """See `Terms.static_maximum`."""

    @property
    def job_types(self) -> list[JobType]:
        return [
            JobType(tasks, mean, heterogeneity)
            for tasks in self.tasks
            for mean in self.means
            for heterogeneity in self.heterogeneities
        ]

    @property
    def jobs_per_sample(self) -> int:
        return len(self.job_types) * len(self.max_pending) * len(self.heuristics)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A named part of the grid jobs of the paper."""

    tasks: tuple[int, ...] = TASKS
    means: tuple[int, ...] = MEANS
    heterogeneities: tuple[Heterogeneity, ...] = HETEROGENEITIES
    max_pending: tuple[int, ...] = MAX_PENDING


PARTS = {
    "paper": Part(),
    "goals": Part(tasks=(100, 1000, 10_000), heterogeneities=(1, 4), max_pending=(1, 3, 6)),
}
"""`goals`: the 54 cells by which heuristics are compared (see `goals.py`)."""


def submission(workload: Workload, first: int, last: int, seed: int, sample: int) -> int:
    """A random second of the trace's interval, all with the same probability."""
    draw = np.random.default_rng([seed, sample, zlib.crc32(workload.file.encode())])
    return int(draw.integers(first, last + 1))
