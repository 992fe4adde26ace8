"""Reading traces: `.swf`, also compressed by gzip or xz."""

from __future__ import annotations

import gzip
import lzma
import zlib
from pathlib import Path

import numpy as np

from adaptor.simulation.errors import TraceError
from adaptor.simulation.traces.swf import FIELDS, Trace
from adaptor.simulation.traces.swf_header import Header, parse_header
from adaptor.simulation.traces.swf_kernel import LONG, ODD, ROWS, parse_rows

_LARGEST = 1e15
"""Beyond it a whole number may not be exact, and no field means so much; NaN is not below it either."""
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"


def read_trace(path: Path, *, lenient: bool = False) -> Trace:
    """Read a trace whole. Compression is told by the content, not by the name.

    A line that is damaged (fewer than 18 fields, or one that is not a number) is an error, or skipped
    and counted when `lenient`. Fields beyond the 18th are ignored and counted.

    Raises:
        TraceError: the file cannot be read, is cut short or damaged, or is not SWF at all.
    """
    try:
        content = _uncompressed(path.read_bytes())
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise TraceError(
            f"{path}: the compressed file is damaged or cut short ({error}); fetch it again"
        ) from error
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    return parse_trace(content, str(path), lenient=lenient)


def parse_trace(content: bytes, name: str, *, lenient: bool = False) -> Trace:
    """A trace from its bytes; as `read_trace`, `name` stands in messages."""
    content = content if content.endswith(b"\n") else content + b"\n"
    most = content.count(b"\n")
    table = np.empty((most, FIELDS), np.float64)
    odd = np.empty((most, 4), np.int64)
    counts = np.zeros(3, np.int64)
    parse_rows(np.frombuffer(content, np.uint8), table, odd, counts)
    damaged = []
    for row, line, begin, end in odd[: counts[ODD]].tolist():
        fields = content[begin:end].decode("latin-1").split()
        numbers = _numbers(fields)
        if numbers is not None:
            table[row] = numbers
        elif lenient:
            damaged.append(row)
        else:
            raise TraceError(f"{name}:{line}: {_complaint(fields)}; --lenient skips such lines")
    rows = int(counts[ROWS])
    if rows and rows == len(damaged):
        raise TraceError(f"{name}: no line has the {FIELDS} numbers of a job: this is not a trace in SWF")
    table = np.delete(table[:rows], damaged, axis=0)
    return Trace(
        name=name,
        header=_header(content),
        table=table,
        skipped=len(damaged),
        long_lines=int(counts[LONG]),
    )


def _uncompressed(content: bytes) -> bytes:
    if content.startswith(_GZIP):
        return gzip.decompress(content)
    if content.startswith(_XZ):
        return lzma.decompress(content)
    return content


def _numbers(fields: list[str]) -> list[float] | None:
    """What the fast loop does not know: exponents, and numbers of many digits."""
    try:
        numbers = [float(field) for field in fields[:FIELDS]]
    except ValueError:
        return None
    return numbers if len(numbers) == FIELDS and all(abs(number) < _LARGEST for number in numbers) else None


def _complaint(fields: list[str]) -> str:
    for place, field in enumerate(fields[:FIELDS], start=1):
        if _numbers([field] + ["0"] * (FIELDS - 1)) is None:
            return f"field {place} is no number: {field[:20]!r}"
    return f"{FIELDS} numbers expected, {len(fields)} found"


def _header(content: bytes) -> Header:
    """From the comment lines in front of the first job."""
    lines = []
    begin = 0
    while begin < len(content):
        end = content.index(b"\n", begin)
        line = content[begin:end].decode("latin-1").strip()
        if line and not line.startswith(";"):
            break
        lines.append(line)
        begin = end + 1
    return parse_header(lines)
