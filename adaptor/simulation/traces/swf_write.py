"""Writing traces."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import numpy.typing as npt

from adaptor.simulation.errors import TraceError
from adaptor.simulation.files import naming
from adaptor.simulation.traces.swf import Trace
from adaptor.simulation.traces.swf_header import header_lines


def write_trace(trace: Trace, path: Path) -> None:
    """Write it, compressed where the name ends in `.gz` or `.xz`.

    Raises:
        TraceError: the file cannot be written.
    """
    content = format_trace(trace).encode("latin-1", errors="replace")
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    elif path.suffix == ".xz":
        content = lzma.compress(content)
    with naming(path, TraceError):
        path.write_bytes(content)


def format_trace(trace: Trace) -> str:
    """The text of the file; whole numbers are written without a fraction."""
    columns = [_texts(trace.table[:, field]) for field in range(trace.table.shape[1])]
    lines = header_lines(trace.header)
    lines.extend(" ".join(row) for row in zip(*columns, strict=True))
    return "".join(f"{line}\n" for line in lines)


def _texts(column: npt.NDArray[np.float64]) -> list[str]:
    whole = column.astype(np.int64)
    if (whole == column).all():
        return [str(number) for number in whole.tolist()]
    return [str(int(number)) if number.is_integer() else repr(number) for number in column.tolist()]
