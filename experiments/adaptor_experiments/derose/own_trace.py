"""The traces that a command names: those of the paper by their keys, and files."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from adaptor.errors import UsageError
from adaptor_experiments.derose.design import WORKLOADS, Workload
from adaptor_simulation.files import TraceError, naming
from adaptor_simulation.trace_run import load_jobs
from adaptor_simulation.traces.repairs import NoUsableJobError

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
