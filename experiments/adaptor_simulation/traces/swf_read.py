"""Reading traces: `.swf`, also compressed by gzip or xz."""

from __future__ import annotations

import gzip
import itertools
import lzma
import math
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

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
_AS_BLANKS = bytes(max(byte, ord(" ")) for byte in range(256))  # control characters part fields too
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
    lines = content.split(b"\n")
    rows = [
        (number, text)
        for number, line in enumerate(lines, 1)
        if (text := line.translate(_AS_BLANKS).strip()) and not text.startswith(b";")
    ]
    table, long = np.full((len(rows), FIELDS), np.nan), np.zeros(len(rows), np.bool_)
    for row, (_, text) in enumerate(rows):
        fields = text.split()
        try:
            table[row] = [float(fields[place]) for place in range(FIELDS)]
        except (IndexError, ValueError):
            continue
        long[row] = len(fields) > FIELDS

    def refuse(row: int, why: str) -> None:
        if not lenient:
            raise TraceError(f"{name}:{rows[row][0]}: {why}; --lenient skips such lines")

    damaged = ~(np.abs(table) < _LARGEST).all(axis=1)
    for row in np.flatnonzero(damaged).tolist():
        refuse(row, _complaint([field.decode("latin-1") for field in rows[row][1].split()]))
    skipped = damaged.copy()
    for field, (what, most, unit) in _LIMITS.items():
        for row in np.flatnonzero(~damaged & (table[:, field] > most)).tolist():
            value = f"{table[row, field]:.15g}; {most:,}{unit} is the most that makes sense"
            refuse(row, f"field {field + 1} ({what}) is too large: {value}")
            skipped[row] = True
    if len(rows) and skipped.all():
        raise TraceError(f"{name}: no line has the {FIELDS} numbers of a job: this is not a trace in SWF")
    return Trace(
        name=name,
        header=_header(lines),
        table=table[~skipped],
        skipped=int(skipped.sum()),
        long_lines=int((long & ~damaged).sum()),
    )


def _uncompressed(content: bytes) -> bytes:
    if content.startswith(_GZIP):
        return gzip.decompress(content)
    if content.startswith(_XZ):
        return lzma.decompress(content)
    return content


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


def _header(lines: Sequence[bytes]) -> Header:
    """From the comment lines in front of the first job."""
    texts = (line.decode("latin-1").strip() for line in lines)
    return parse_header([*itertools.takewhile(lambda text: not text or text.startswith(";"), texts)])
