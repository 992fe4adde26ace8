"""A trace in the Standard Workload Format, version 2.2 (Chapin et al. 1999; Parallel Workloads Archive).

Its header are comment lines of the form `; Label: value`, with continuation lines.
"""

from __future__ import annotations

import enum
import gzip
import lzma
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor_simulation.files import TraceError, naming

_LABELS = frozenset(
    [
        "Version", "Computer", "Installation", "Acknowledge", "Information", "Conversion", "MaxJobs",
        "MaxRecords", "Preemption", "UnixStartTime", "TimeZone", "TimeZoneString", "StartTime", "EndTime",
        "MaxNodes", "MaxProcs", "MaxRuntime", "MaxMemory", "AllowOveruse", "MaxQueues", "Queues",
        "Queue", "MaxPartitions", "Partitions", "Partition", "Note", "Notes",
    ]
)  # fmt: skip
_LINE = re.compile(r";(\s*)([A-Za-z][\w /-]*?)\s*:\s*(.*)")
_NUMBER = re.compile(r"\s*(-?)0*(\d{1,3}(?:,\d{3})+|\d+)(?!\w|[.,]\d)", re.ASCII)
_MOST_DIGITS = 30


class Header(msgspec.Struct, frozen=True):
    """The labels in their order; a label may come more than once (Note, Queue, Partition)."""

    entries: tuple[tuple[str, str], ...] = ()

    def all(self, label: str) -> list[str]:
        return [value for known, value in self.entries if known == label]

    def text(self, label: str) -> str | None:
        """The first value; None where the label is missing."""
        return next(iter(self.all(label)), None)

    def number(self, label: str) -> int | None:
        """The number with which the value begins, as in `338 (batch partition; 512 total)` or `1,024`.

        None where it is missing, not a number of its own (`128K`, `1.5`), or -1 for unknown. One of very many
        digits, which Python would not convert, is 10^30.
        """
        match = _NUMBER.match(self.text(label) or "")
        if not match or match[1]:
            return None
        digits = match[2].replace(",", "")
        return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS

    @property
    def notes(self) -> list[str]:
        return [*self.all("Note"), *self.all("Notes")]


def parse_header(lines: Iterable[str]) -> Header:
    """Comment lines to labels; a line without a label of its own continues the value before it.

    A label is a known one, or any word that follows `;` after no more than one blank: text that
    continues a value is indented further and may hold a colon of its own, such as an address.
    """
    entries: list[tuple[str, str]] = []
    for line in lines:
        match = _LINE.match(line)
        if match and (match[2] in _LABELS or match[1] in ("", " ")):
            entries.append((match[2], match[3].strip()))
            continue
        more = line.lstrip(";").strip()
        if more and entries:
            label, value = entries[-1]
            entries[-1] = (label, f"{value}\n{more}" if value else more)
    return Header(tuple(entries))


def header_lines(header: Header) -> list[str]:
    """The header as comment lines, the reverse of `parse_header`."""
    lines = []
    for label, value in header.entries:
        first, *more = value.split("\n")
        lines.append(f"; {label}: {first}".rstrip())
        lines.extend(f";\t{line}" for line in more)
    return lines


FIELDS = 18
UNKNOWN = -1  # stands in any field for what is not known; never a number to calculate with


MOST_SECONDS = 10**10
"""Three centuries. No time of a trace is longer, and sums of such times can be counted in 64 bits."""
MOST_PROCESSORS = 10**8  # ten times those of the largest machine that there was by 2026


class Field(enum.IntEnum):
    """The 18 fields of a line, counted from 0. Times are seconds."""

    NUMBER = 0
    SUBMIT = 1
    """Since the header's UnixStartTime."""
    WAIT = 2
    """Under the machine's own scheduler."""
    RUN = 3
    ALLOCATED = 4
    """Processors that it got."""
    CPU_TIME = 5
    """Average over its processors."""
    MEMORY = 6
    """Kilobytes per processor, used."""
    REQUESTED = 7
    """Processors that it asked for."""
    REQUESTED_TIME = 8
    REQUESTED_MEMORY = 9
    STATUS = 10
    USER = 11
    GROUP = 12
    APPLICATION = 13
    QUEUE = 14
    PARTITION = 15
    PRECEDING_JOB = 16
    THINK_TIME = 17
    """Between the end of the preceding job and this submission."""


class Status(enum.IntEnum):
    """Field 11. Parts stand next to a line of their own for the whole job (0, 1 or 5)."""

    UNKNOWN = -1
    FAILED = 0
    COMPLETED = 1
    PART = 2
    LAST_PART_COMPLETED = 3
    LAST_PART_FAILED = 4
    CANCELLED = 5


class Trace(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Content of a file, unrepaired; `normalise` makes jobs of it."""

    name: str
    header: Header
    table: npt.NDArray[np.float64]
    """(rows, 18), in the order of the file."""
    skipped: int = 0
    """Damaged lines that were left out (lenient reading)."""
    long_lines: int = 0
    """Lines with more than 18 fields, of which the first 18 count."""

    def __len__(self) -> int:
        return len(self.table)

    def column(self, field: Field) -> npt.NDArray[np.float64]:
        return self.table[:, field]


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
