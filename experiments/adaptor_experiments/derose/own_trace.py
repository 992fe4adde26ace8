"""A trace that is not one of the paper's."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

from adaptor.simulation.errors import TraceError
from adaptor.simulation.files import naming
from adaptor.simulation.trace_run import load_jobs
from adaptor.simulation.traces.repairs import NoUsableJobError
from adaptor_experiments.derose.design import Workload

_ENDINGS = re.compile(r"(\.swf)?(\.gz|\.xz)?$")
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")


def own_workload(path: Path, processors: int | None = None) -> Workload:
    """A file (SWF) on a machine of so many processors; None: as its header says.

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
        paper=None,
        own=path.resolve(),
        content=content,
        reason="not in the paper",
    )
