"""Design of the experiment: traces, kinds of grid job, and random draws."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np

from adaptor.crafting.heuristics import HeuristicName
from adaptor_simulation.cluster import Policy
from adaptor_simulation.files import ReplayError
from adaptor_simulation.kernels import Array

Heterogeneity = Literal[1, 2, 4]

TASKS = (100, 1000, 10_000, 100_000)
MEANS = (100, 1000, 10_000)
HETEROGENEITIES: tuple[Heterogeneity, ...] = get_args(Heterogeneity)
MAX_PENDING = (1, 2, 3, 4, 5, 6)
HEURISTICS: tuple[HeuristicName, ...] = ("static", "adaptive")  # those of the paper
_HALF_WIDTH: dict[Heterogeneity, float] = {1: 0.0, 2: 0.5, 4: 0.75}
"""Half the width of the uniform distribution, in means (Table 2)."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A trace of Table 1, on a machine with this number of processors. `page.yaml` has the paper's numbers of
    it."""

    key: str
    """Names it in files and options."""
    title: str
    file: str
    """Without `.swf.gz`."""
    processors: int
    own: Path | None = None
    """The file, where the trace is not one of `WORKLOADS`."""
    content: int = 0
    """Checksum of that file: its samples are not mistaken for those of another one."""

    @property
    def in_files(self) -> str:
        """Common prefix of the names of its samples."""
        return f"{self.key}-{self.content:08x}" if self.own else self.key


WORKLOADS = tuple(
    Workload(key=key, title=title, file=file, processors=processors)
    for key, title, file, processors in (
        ("sdsc-sp2", "SDSC SP2", "SDSC-SP2-1998-4.2-cln", 128),
        ("sdsc-blue", "SDSC BlueHorizon", "SDSC-BLUE-2000-4.2-cln", 1152),
        ("ctc-sp2-512", "CTC SP2 (512)", "CTC-SP2-1996-3.1-cln", 512),
        ("ctc-sp2-338", "CTC SP2 (338)", "CTC-SP2-1996-3.1-cln", 338),
    )
)


def trace_files(workloads: Sequence[Workload], folder: Path) -> dict[Workload, Path]:
    """Path of each trace. Raises ReplayError: one is not there."""
    paths = {workload: workload.own or folder / f"{workload.file}.swf.gz" for workload in workloads}
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
    """Mean of the task runtimes, in seconds."""
    heterogeneity: Heterogeneity

    def runtimes(self, seed: int, sample: int) -> Array:
        """Uniform around the mean, in whole seconds; the same for every trace, limit and heuristic."""
        draw = np.random.default_rng([seed, sample, self.tasks, self.mean, self.heterogeneity])
        half = _HALF_WIDTH[self.heterogeneity] * self.mean
        drawn = np.rint(draw.uniform(self.mean - half, self.mean + half, self.tasks))
        return np.maximum(1, drawn).astype(np.int64)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All on which a result depends, except the trace and the number of the sample."""

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
    scheduler: Policy = "conservative"
    """The paper's; `easy` is that of most sites."""
    static_maximum: bool = False
    """Whether static always asks for max_proc processors (`GridTerms.static_maximum`)."""
    poll_interval: float = 0.0
    """Seconds between two looks at the queue; 0: one at each event."""

    @property
    def job_types(self) -> list[JobType]:
        return [
            JobType(tasks, mean, heterogeneity)
            for tasks in self.tasks
            for mean in self.means
            for heterogeneity in self.heterogeneities
        ]

    def case(self, workload: Workload) -> str:
        """A trace at this load, such as `ctc-sp2-512 × 0.7`: the key of the paper's numbers."""
        return workload.key if self.stretch == 1 else f"{workload.key} × {self.stretch:g}"

    @property
    def jobs_per_sample(self) -> int:
        return len(self.job_types) * len(self.max_pending) * len(self.heuristics)


CELLS = ("tasks", "means", "heterogeneities", "max_pending")  # the settings that say which grid jobs are run
PARTS: dict[str, dict[str, tuple[int, ...]]] = {
    "paper": {},
    "goals": {"tasks": (100, 1000, 10_000), "heterogeneities": (1, 4), "max_pending": (1, 3, 6)},
}
"""Parts of the grid jobs of the paper, as settings. `goals`: the 54 cells by which heuristics are judged
(see `goals.py`)."""


def submission(workload: Workload, first: int, last: int, seed: int, sample: int) -> int:
    """A random second of the trace's interval, all with the same probability."""
    draw = np.random.default_rng([seed, sample, zlib.crc32(workload.file.encode())])
    return int(draw.integers(first, last + 1))
