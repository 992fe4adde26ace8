"""A trace in the Standard Workload Format, version 2.2 (Chapin et al. 1999; Parallel Workloads Archive)."""

from __future__ import annotations

import enum

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor.simulation.traces.swf_header import Header

FIELDS = 18
UNKNOWN = -1
"""Stands in any field for what is not known; never a number to calculate with."""


MOST_SECONDS = 10**10
"""Three centuries. No time of a trace is longer, and sums of such times can be counted in 64 bits."""
MOST_PROCESSORS = 10**8
"""Ten times those of the largest machine that there was by 2026."""


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
    """What a file says, unrepaired; `normalise` makes jobs of it."""

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
