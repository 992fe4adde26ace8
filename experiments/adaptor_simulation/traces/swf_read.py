"""Reading traces: `.swf`, also compressed by gzip or xz."""

from __future__ import annotations

import gzip
import itertools
import lzma
import math
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from adaptor_simulation.files import TraceError
from adaptor_simulation.traces.swf import (
    FIELDS,
    MOST_PROCESSORS,
    MOST_SECONDS,
    Field,
    Header,
    Trace,
    parse_header,
)
from adaptor_simulation.traces.swf_kernel import LONG, ODD, ROWS, parse_rows

_LARGEST = 1e15
"""Beyond it a whole number may not be exact, and no field has such values; NaN is not below it either."""
_LIMITS = {
    Field.SUBMIT: ("submit time", MOST_SECONDS, " s"),
    Field.RUN: ("run time", MOST_SECONDS, " s"),
    Field.ALLOCATED: ("allocated processors", MOST_PROCESSORS, ""),
    Field.REQUESTED: ("requested processors", MOST_PROCESSORS, ""),
    Field.REQUESTED_TIME: ("requested time", MOST_SECONDS, " s"),
}
"""Limits of the fields that are calculated with: name, the most that makes sense, unit."""
_BLANKS = bytes(range(33))  # as in the inner loop
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"


def read_trace(path: Path, *, lenient: bool = False) -> Trace:
    """Read a whole trace. Compression is recognised by the content, not by the name.

    A line that is damaged (fewer than 18 fields, or one that is not a number or impossibly large) is an
    error, or skipped and counted when `lenient`. Fields beyond the 18th are ignored and counted.

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
    damaged += _beyond_all_measure(content, table[:rows], damaged, name, lenient=lenient)
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


def _beyond_all_measure(
    content: bytes, table: npt.NDArray[np.float64], damaged: list[int], name: str, *, lenient: bool
) -> list[int]:
    """The rows, except those that are known to be damaged, with a number that no trace can have.

    Raises:
        TraceError: there is one, and it is not to be skipped.
    """
    known = np.isin(np.arange(len(table)), damaged)
    found: set[int] = set()
    for field, (what, most, unit) in _LIMITS.items():
        rows = np.flatnonzero((table[:, field] > most) & ~known).tolist()
        if rows and not lenient:
            raise TraceError(
                f"{name}:{_line_number(content, rows[0])}: field {field + 1} ({what}) is too large:"
                f" {table[rows[0], field]:.15g}; {most:,}{unit} is the most that makes sense;"
                " --lenient skips such lines"
            )
        found.update(rows)
    return sorted(found)


def _line_number(content: bytes, row: int) -> int:
    """From 1, of a row of the table."""
    lines = (number for number, line in enumerate(content.split(b"\n"), start=1) if _is_data(line))
    return next(itertools.islice(lines, row, None))


def _is_data(line: bytes) -> bool:
    text = line.strip(_BLANKS)
    return bool(text) and not text.startswith(b";")


def _uncompressed(content: bytes) -> bytes:
    if content.startswith(_GZIP):
        return gzip.decompress(content)
    if content.startswith(_XZ):
        return lzma.decompress(content)
    return content


def _numbers(fields: list[str]) -> list[float] | None:
    """Numbers that the fast loop does not know: exponents, and numbers of many digits."""
    numbers = [_number(field) for field in fields[:FIELDS]]
    return numbers if len(numbers) == FIELDS and all(abs(number) < _LARGEST for number in numbers) else None


def _number(field: str) -> float:
    """NaN where it is none."""
    try:
        return math.nan if "inf" in field.lower() else float(field)
    except ValueError:
        return math.nan


def _complaint(fields: list[str]) -> str:
    for place, field in enumerate(fields[:FIELDS], start=1):
        number = _number(field)
        if math.isnan(number):
            return f"field {place} is no number: {field[:20]!r}"
        if abs(number) >= _LARGEST:
            return f"field {place} is too large: {field[:20]!r}; numbers end at {_LARGEST:g}"
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
