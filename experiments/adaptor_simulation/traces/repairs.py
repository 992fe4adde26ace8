"""The named rules by which a trace is made fit for a simulation, and the count of what each did."""

from __future__ import annotations

import enum
from typing import Literal

import msgspec

from adaptor_simulation.files import TraceError


class Rule(enum.Enum):
    """Each value is a rule's name in the output. A job that is left out counts for its first rule only."""

    PART = "part-of-a-job"
    """Left out: status 2, 3 or 4, part of a job that has a line of its own as a whole."""
    NO_SUBMIT = "no-submit-time"
    """Left out: the submit time is unknown or before the start of the trace."""
    NEVER_STARTED = "never-started"
    """Left out: cancelled (status 5) with no run time or no processors."""
    NO_PROCESSORS = "no-processors"
    """Left out: neither allocated nor requested processors are known."""
    NO_RUN_TIME = "no-run-time"
    """Left out: the run time is unknown."""
    ZERO_RUN_TIME = "zero-run-time"
    """The run time rounds to 0: left out, or one second (`zero_run`)."""
    NO_REQUEST = "no-requested-time"
    """Left out, or the run time, or the header's MaxRuntime stands in (`missing_request`)."""
    LARGER = "larger-than-machine"
    """Left out, cut to the machine, or refused (`larger`)."""
    OTHER_PROCESSORS = "other-processors"
    """The processors are taken from the other field, as the preferred one is unknown (`processors`)."""
    OVERRUN = "run-above-request"
    """The run time is cut to the request, or the request raised to the run time (`overrun`)."""
    FRACTION = "fraction-of-a-second"
    """A time was rounded to the nearest second, halves up."""
    OUT_OF_ORDER = "out-of-order"
    """Sorted by submission; counted are the lines that have to be moved, at least. Equal times stay in the
    file's order."""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """Choices that a rule leaves open. The defaults are those of De Rose et al. 2008, §4.4, where it has
    any."""

    processors: Literal["allocated", "requested"] = "allocated"
    """Field that counts; the other one stands in where it is unknown."""
    missing_request: Literal["drop", "run", "longest"] = "drop"
    """`longest`: the header's MaxRuntime, or the longest requested time of the trace without it."""
    zero_run: Literal["drop", "second"] = "drop"
    larger: Literal["drop", "clamp", "refuse"] = "drop"
    overrun: Literal["cut", "raise"] = "cut"


class Repairs(msgspec.Struct, frozen=True, kw_only=True):
    """Repairs of a trace by normalising."""

    rows: int
    """Lines of the trace."""
    kept: int
    skipped: int
    """Damaged lines that were not read (lenient reading)."""
    long_lines: int
    """Lines of which only the first 18 fields count."""
    jobs: dict[Rule, int]
    """Number of jobs that each rule touched; all rules are there."""

    def summary(self) -> str:
        """One line: `59,715 lines, 53,999 jobs kept; no-run-time 5, …`."""
        touched = [f"{rule.value} {count:,}" for rule, count in self.jobs.items() if count]
        lines = ("damaged-line", self.skipped), ("more-than-18-fields", self.long_lines)
        touched += [f"{what} {count:,}" for what, count in lines if count]
        return f"{self.rows:,} lines, {self.kept:,} jobs kept; " + (", ".join(touched) or "nothing repaired")


EMPTY = "the trace is empty: it has no line of a job"


class NoUsableJobError(TraceError):
    """Nothing is left to simulate; `repairs` says which rules left the jobs out."""

    def __init__(self, trace: str, repairs: Repairs) -> None:
        told = f"no job to simulate ({repairs.summary()})" if repairs.rows else EMPTY
        if repairs.jobs[Rule.NO_REQUEST]:
            told += "; --missing-request run takes the run time for the request"
        super().__init__(f"{trace}: {told}")
        self.repairs = repairs
