"""Traces, also those that a command names, kinds of grid job, and random draws."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np

from adaptor.crafting.heuristics import HeuristicName
from adaptor.errors import UsageError
from adaptor_simulation.cluster import Policy
from adaptor_simulation.files import ReplayError, TraceError, naming
from adaptor_simulation.kernels import Array
from adaptor_simulation.trace_run import load_jobs
from adaptor_simulation.traces.repairs import NoUsableJobError

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


_ENDINGS = re.compile(r"(\.swf)?(\.gz|\.xz)?$")
_NEARBY = Path("../shared/traces")
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")


def own_workload(path: Path, processors: int | None = None) -> Workload:
    """A file (SWF) on a machine with this number of processors; None: as its header says.

    Raises:
        TraceError: it cannot be read or leaves no job.
    """
    try:
        loaded = load_jobs(path, processors=processors)
    except NoUsableJobError as empty:  # the experiment has no options for repairs
        told = f"{path}: no job to simulate ({empty.repairs.summary()}); the jobs need requested times"
        raise TraceError(told) from empty
    with naming(path, TraceError):
        content = zlib.crc32(path.read_bytes())
    stem = _ENDINGS.sub("", path.name) or path.name
    return Workload(
        key=f"{_UNUSUAL.sub('-', stem)}-{loaded.processors}p",
        title=f"{stem} ({loaded.processors:,})",
        file=stem,
        processors=loaded.processors,
        own=path.resolve(),
        content=content,
    )


def workloads_named(names: Sequence[str], processors: int | None) -> list[Workload]:
    """Each once, in the order in which they are named; none named: all of the paper.

    Args:
        processors: of the machine of the files; None: as their headers say.

    Raises:
        UsageError: a name is neither a key nor a file, two files have one name, or `processors` has no file.
        TraceError: a file cannot be read or leaves no job.
    """
    known = {workload.key: workload for workload in WORKLOADS}
    files = [name for name in dict.fromkeys(names) if name not in known]
    if processors is not None and not files:
        raise UsageError("--processors is for a --trace FILE; the paper's traces have their machines")
    for name in files:
        if not Path(name).is_file():
            raise UsageError(f"--trace: {name!r} is none of {', '.join(known)}, and no file")
    if not names:
        return list(known.values())
    found: dict[str, Workload] = {}
    for name in dict.fromkeys(names):
        workload = known[name] if name in known else own_workload(Path(name), processors)
        if workload.key in found and workload != found[workload.key]:
            raise UsageError(
                f"--trace: {workload.own} and {found[workload.key].own} have one name; rename one of them"
            )
        found[workload.key] = workload
    return list(found.values())


def folder_of_traces(value: Path | None) -> Path:
    """Folder as named, else the one nearby. Raises UsageError: neither is there."""
    if value is None and not _NEARBY.is_dir():
        raise UsageError("where are the traces? Say --traces DIR; `adaptor trace fetch` downloads them")
    return value or _NEARBY


def traces_named(
    names: Sequence[str], processors: int | None, traces: Path | None
) -> tuple[list[Workload], Path]:
    """Traces that `--trace`, `--processors` and `--traces` name, and the folder of the paper's traces.

    Raises:
        UsageError: a name is no trace, or the folder that is needed is not there.
        TraceError: a file cannot be read or leaves no job.
    """
    workloads = workloads_named(names, processors)
    own = all(workload.own for workload in workloads)
    return workloads, Path() if own else folder_of_traces(traces)
