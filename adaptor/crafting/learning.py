"""How long a bag's tasks run: the estimate behind tr, learned from finished and from cut tasks."""

from __future__ import annotations

import math
from collections.abc import Set

import msgspec

SHORTEST = 1.0
"""Seconds; the least estimate, so that a task of no time at all does not ask for endless rounds."""
NEARLY = 0.95
"""A task that had this share of a time is taken to have had that time: ending a pilot takes some of it."""
MOST = 0.75
"""The share that counts where the whole was promised: starting a pilot may take more than the pad."""


class LearnedRuntimes(msgspec.Struct, frozen=True, kw_only=True):
    """All that a `RuntimeLearner` knows; a journal of attempts is enough to rebuild it."""

    finished: int = 0
    total: float = 0.0
    squares: float = 0.0
    """The sum of the squared runtimes."""
    longest: float = 0.0
    """The longest runtime of a finished task."""
    not_enough: float = 0.0
    """The longest time that was not enough for a task."""
    cut: dict[int, float] = {}
    """By unfinished task whose pilot's time was up: the seconds that it ran, at the most."""


class RuntimeLearner:
    """The learning of the task runtime for one bag at one site (De Rose et al. 2008, §4.3.1).

    "The adaptive heuristic makes an initial estimate (based on a default time). If tasks could be
    successfully finished in this time, the estimated runtime will be the runtime of the longest task.
    If the requested time is not enough to run tasks, the estimated task runtime will be the requested
    time multiplied by an integer factor."

    The paper does not say how the two go together in a mixed bag. Here the time that was not enough
    counts for the whole bag until a task has finished that ran at least as long; from then on the
    estimate is the longest finished task again, and only the tasks that were cut themselves need more.
    All times are seconds; memory is used for cut tasks only.
    """

    def __init__(
        self, *, initial: float, factor: int, longest: float, learned: LearnedRuntimes | None = None
    ) -> None:
        """`initial` is the estimate before anything is known, `longest` the longest task that the site
        can run (maxTr less the pad).

        Raises:
            ValueError: the factor is not an integer of 2 or more.
        """
        if factor < 2 or factor != int(factor):
            raise ValueError(f"the growth factor must be an integer of 2 or more, not {factor!r}")
        known = learned or LearnedRuntimes()
        self._initial, self._factor, self._possible = initial, factor, longest
        self._finished, self._total, self._squares = known.finished, known.total, known.squares
        self._longest = known.longest
        self._cut = dict(known.cut)
        self._not_enough = max(known.not_enough, *known.cut.values(), 0.0)

    @property
    def learned(self) -> LearnedRuntimes:
        """What is known now, to go on from later."""
        return LearnedRuntimes(
            finished=self._finished,
            total=self._total,
            squares=self._squares,
            longest=self._longest,
            not_enough=self._not_enough,
            cut=self._cut.copy(),
        )

    def suppose(self, estimate: float) -> None:
        """What is known of the bag at another site stands in for the default, until a task finishes here."""
        self._initial = estimate

    def finished(self, runtime: float, task: int | None = None) -> None:
        """A task finished after so many seconds; name it, so that an earlier cut of it is forgotten."""
        self._finished += 1
        self._total += runtime
        self._squares += runtime * runtime
        self._longest = max(self._longest, runtime)
        if task is not None:
            self.forget(task)

    def finished_together(self, count: int, total: float, squares: float, longest: float) -> None:
        """As `finished` for so many tasks, from the sums of their runtimes and of the squares of them."""
        self._finished += count
        self._total += total
        self._squares += squares
        self._longest = max(self._longest, longest)

    def cut(self, task: int, ran: float) -> None:
        """A task had run for so many seconds, unfinished, when its pilot's time was up.

        One that was promised the longest possible time, after an earlier cut, and had most of it has
        had all that the site can give.
        """
        before = self._cut.get(task, 0.0)
        if self._factor * before >= self._possible and ran >= MOST * self._possible:
            ran = max(ran, self._possible)
        self._cut[task] = max(ran, before)
        self._not_enough = max(self._not_enough, ran)

    def forget(self, task: int) -> None:
        """The task will not run again: its cuts count no longer, unless they are all that is known."""
        ran = self._cut.pop(task, 0.0)
        if self._finished and self._longest < ran == self._not_enough:
            self._not_enough = max(self._cut.values(), default=0.0)

    @property
    def estimate(self) -> float:
        """The estimated runtime of a task of which nothing is known."""
        known = self._longest if self._finished else self._initial
        if self._not_enough > self._longest and self._not_enough >= NEARLY * known:
            known = self._factor * max(self._not_enough, known)
        return self._within(known)

    def estimate_of(self, task: int) -> float:
        """The estimated runtime of one task: more than it had when it was cut."""
        return max(self.estimate, self.needed_by(task))

    def needed_by(self, task: int) -> float:
        """What the task's own cuts say that it needs at least, whatever is known of the others."""
        return self._within(self._factor * self._cut.get(task, 0.0))

    @property
    def cut_tasks(self) -> Set[int]:
        """Unfinished tasks whose pilot's time was up: only these need more than `estimate`."""
        return self._cut.keys()

    def hopeless(self, task: int) -> bool:
        """Whether the task was cut although it had (nearly) the longest time that the site allows."""
        return self._cut.get(task, 0.0) >= NEARLY * self._possible

    @property
    def mean(self) -> float | None:
        """Mean runtime of the finished tasks; None before the first."""
        return self._total / self._finished if self._finished else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the finished tasks' runtimes (of a sample); None before the second."""
        if self._finished < 2:
            return None
        spread = self._squares - self._total * self._total / self._finished
        return math.sqrt(max(0.0, spread) / (self._finished - 1))

    def _within(self, runtime: float) -> float:
        return max(SHORTEST, min(runtime, self._possible))
