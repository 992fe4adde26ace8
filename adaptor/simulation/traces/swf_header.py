"""The header of a trace: comment lines of the form `; Label: value`, with continuation lines."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

_LABELS = frozenset(
    [
        "Version", "Computer", "Installation", "Acknowledge", "Information", "Conversion", "MaxJobs",
        "MaxRecords", "Preemption", "UnixStartTime", "TimeZone", "TimeZoneString", "StartTime", "EndTime",
        "MaxNodes", "MaxProcs", "MaxRuntime", "MaxMemory", "AllowOveruse", "MaxQueues", "Queues",
        "Queue", "MaxPartitions", "Partitions", "Partition", "Note", "Notes",
    ]
)  # fmt: skip
_LINE = re.compile(r";(\s*)([A-Za-z][\w /-]*?)\s*:\s*(.*)")
_NUMBER = re.compile(r"\s*(-?)0*(\d+)")
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
        """The number with which the value begins, as in `338 (batch partition; 512 total)`.

        None where it is missing, not a number, or -1 for unknown. One of very many digits, which Python
        would not convert, is 10^30.
        """
        match = _NUMBER.match(self.text(label) or "")
        if not match or match[1]:
            return None
        return int(match[2]) if len(match[2]) <= _MOST_DIGITS else 10**_MOST_DIGITS

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
