"""From a trace as it was recorded to jobs that a simulated cluster can run, rule by rule."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
import numpy.typing as npt

from adaptor.units import LARGEST
from adaptor_simulation.files import TraceError
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.traces.repairs import EMPTY, Choices, NoUsableJobError, Repairs, Rule
from adaptor_simulation.traces.swf import MOST_PROCESSORS, MOST_SECONDS, Field, Status, Trace

Mask = npt.NDArray[np.bool_]
Column = npt.NDArray[np.float64]

_PARTS = (Status.PART, Status.LAST_PART_COMPLETED, Status.LAST_PART_FAILED)


def machine_size(trace: Trace) -> tuple[int, str]:
    """The processors of the machine and where the number is from.

    MaxProcs, else MaxNodes (the two differ where nodes have several processors), else the largest job.

    Raises:
        TraceError: the trace says nothing about it, or something impossible.
    """
    for label in ("MaxProcs", "MaxNodes"):
        size = _header_number(trace, label, MOST_PROCESSORS, "give --processors")
        if size:
            return size, f"the header's {label}"
    largest = max(trace.column(field).max(initial=0) for field in (Field.ALLOCATED, Field.REQUESTED))
    if largest < 1:
        nothing = "neither the header nor a job says how many processors there are"
        raise TraceError(f"{trace.name}: {nothing if len(trace) else EMPTY}")
    return int(largest), "the largest job, as the header has no MaxProcs"


def _header_number(trace: Trace, label: str, most: int, way_out: str) -> int | None:
    number = trace.header.number(label)
    if number is not None and number > most:
        raise TraceError(
            f"{trace.name}: the header's {label} is {(trace.header.text(label) or '')[:40]};"
            f" {most:,} is the most that is simulated: {way_out}"
        )
    return number


def normalise(trace: Trace, processors: int, choices: Choices | None = None) -> tuple[Jobs, Repairs]:
    """The jobs for a machine of this size, in the order of submission, and what was repaired.

    Raises:
        NoUsableJobError: no job is left.
        TraceError: a job is larger than the machine and `choices` refuses that, or they ask for the header's
            MaxRuntime and that is impossible.
    """
    return _Normaliser(trace, processors, choices or Choices()).result()


class _Normaliser:
    """Goes through the rules once; `kept` shrinks, `counts` fills."""

    def __init__(self, trace: Trace, processors: int, choices: Choices) -> None:
        self.trace, self.machine, self.choices = trace, processors, choices
        self.counts = dict.fromkeys(Rule, 0)
        self.kept: Mask = np.ones(len(trace), np.bool_)
        self.submit = _rounded(trace.column(Field.SUBMIT))
        self.run = _rounded(trace.column(Field.RUN))
        self.estimate = _rounded(trace.column(Field.REQUESTED_TIME))
        self.processors = self._preferred_processors()

    def result(self) -> tuple[Jobs, Repairs]:
        self._drop_unusable()
        self._treat_zero_run()
        self._treat_missing_request()
        self._treat_larger()
        self._count_kept()
        self._treat_overrun()
        return self._jobs(), self._repairs()

    def _preferred_processors(self) -> Column:
        allocated, requested = self.trace.column(Field.ALLOCATED), self.trace.column(Field.REQUESTED)
        first, other = (
            (allocated, requested) if self.choices.processors == "allocated" else (requested, allocated)
        )
        self.other_taken: Mask = (first < 1) & (other >= 1)
        return np.where(self.other_taken, other, first)

    def _drop(self, rule: Rule, wrong: Mask) -> None:
        wrong = wrong & self.kept
        self.counts[rule] = int(wrong.sum())
        self.kept = self.kept & ~wrong

    def _drop_unusable(self) -> None:
        status, allocated = self.trace.column(Field.STATUS), self.trace.column(Field.ALLOCATED)
        never = (status == Status.CANCELLED) & ((self.run <= 0) | ((allocated < 1) & (self.processors < 1)))
        self._drop(Rule.PART, np.isin(status, _PARTS))
        self._drop(Rule.NO_SUBMIT, self.trace.column(Field.SUBMIT) < 0)
        self._drop(Rule.NEVER_STARTED, never)
        self._drop(Rule.NO_PROCESSORS, self.processors < 1)
        self._drop(Rule.NO_RUN_TIME, self.trace.column(Field.RUN) < 0)

    def _treat_zero_run(self) -> None:
        if self.choices.zero_run == "drop":
            self._drop(Rule.ZERO_RUN_TIME, self.run < 1)
        else:
            zero = self.kept & (self.run < 1)
            self.counts[Rule.ZERO_RUN_TIME] = int(zero.sum())
            self.run = np.where(zero, 1.0, self.run)

    def _treat_missing_request(self) -> None:
        missing = self.kept & (self.estimate < 1)
        if self.choices.missing_request == "drop":
            self._drop(Rule.NO_REQUEST, missing)
            return
        self.counts[Rule.NO_REQUEST] = int(missing.sum())
        if self.choices.missing_request == "run":
            self.estimate = np.where(missing, self.run, self.estimate)
        else:
            way_out = "correct it, or take --missing-request run"
            said = _header_number(self.trace, "MaxRuntime", MOST_SECONDS, way_out)
            longest = said or self.estimate.max(initial=0)
            self.estimate = np.where(missing, np.maximum(longest, self.run), self.estimate)

    def _treat_larger(self) -> None:
        larger = self.kept & (self.processors > self.machine)
        if self.choices.larger == "drop":
            self._drop(Rule.LARGER, larger)
            return
        if self.choices.larger == "refuse" and larger.any():
            number = int(self.trace.column(Field.NUMBER)[np.argmax(larger)])
            needs = int(self.processors[np.argmax(larger)])
            raise TraceError(
                f"{self.trace.name}: job {number} needs {needs} of the machine's {self.machine} processors"
            )
        self.counts[Rule.LARGER] = int(larger.sum())
        self.processors = np.where(larger, float(self.machine), self.processors)

    def _count_kept(self) -> None:
        times = self.trace.table[:, [Field.SUBMIT, Field.RUN, Field.REQUESTED_TIME]]
        fractions: Mask = (times != np.floor(times)).any(axis=1)
        submit = self.submit[self.kept]
        self.counts[Rule.OTHER_PROCESSORS] = int((self.other_taken & self.kept).sum())
        self.counts[Rule.FRACTION] = int((fractions & self.kept).sum())
        self.counts[Rule.OUT_OF_ORDER] = _to_move(submit)

    def _treat_overrun(self) -> None:
        over = self.kept & (self.run > self.estimate)
        self.counts[Rule.OVERRUN] = int(over.sum())
        if self.choices.overrun == "cut":
            self.run = np.minimum(self.run, np.where(over, self.estimate, np.inf))
        else:
            self.estimate = np.where(over, self.run, self.estimate)

    def _jobs(self) -> Jobs:
        rows = np.flatnonzero(self.kept)
        if not len(rows):
            raise NoUsableJobError(self.trace.name, self._repairs())
        rows = rows[np.argsort(self.submit[rows], kind="stable")]
        return Jobs(
            number=_whole(self.trace.column(Field.NUMBER), rows),
            submit=_whole(self.submit, rows),
            run=_whole(self.run, rows),
            estimate=_whole(self.estimate, rows),
            processors=_whole(self.processors, rows),
            memory=self._memory(rows),
            user=self._user(rows),
        )

    def _memory(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.int64] | None:
        """Bytes for each processor, as requested or else as used; None: no job has either."""
        requested, used = self.trace.column(Field.REQUESTED_MEMORY), self.trace.column(Field.MEMORY)
        kilobytes = np.where(requested > 0, requested, np.maximum(used, 0.0))
        if not kilobytes.any():
            return None
        return _whole(np.minimum(np.ceil(kilobytes * 1024), float(LARGEST)), rows)

    def _user(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.int64] | None:
        """Numbers of the users; None: no job has one."""
        user = self.trace.column(Field.USER)
        return _whole(np.maximum(-1, user), rows) if (user >= 0).any() else None

    def _repairs(self) -> Repairs:
        return Repairs(
            rows=len(self.trace),
            kept=int(self.kept.sum()),
            skipped=self.trace.skipped,
            long_lines=self.trace.long_lines,
            jobs=self.counts,
        )


def _to_move(times: Column) -> int:
    """Least number of times to move so that all ascend: all but the longest ascending ones."""
    if (np.diff(times) >= 0).all():
        return 0
    ends: list[float] = []  # the least last value of the ascending ones of each length
    for time in times.tolist():
        place = bisect_right(ends, time)
        ends[place : place + 1] = [time]
    return len(times) - len(ends)


def _rounded(times: Column) -> Column:
    return np.floor(times + 0.5)


def _whole(column: Column, rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    whole: npt.NDArray[np.int64] = column[rows].astype(np.int64)
    return whole
