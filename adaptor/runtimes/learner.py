"""The runtime of a bag's tasks, the estimate behind tr: learned from finished and from cut tasks."""

from __future__ import annotations

from collections.abc import Set

import msgspec

SHORTEST = 1.0  # seconds, the least estimate: an estimate of 0 would plan an infinite number of rounds
NEARLY = 0.95
"""A task that ran for this share of a time counts as having had all of it: ending a pilot takes the rest."""
MOST = 0.75
"""Share for a pilot that was planned for the longest time: its start may take more than the pad."""

ENOUGH = 8  # finished tasks whose mean speaks for the others
CUT_AT_EVEN_ODDS = 1.1
"""Growth factor after a kill at the pilot's end if tasks may start at even odds: most killed tasks are not
longer than average."""


class LearnedRuntimes(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a `RuntimeLearner`, in seconds; the attempts in the journal suffice to rebuild it."""

    finished: int = 0
    total: float = 0.0
    squares: float = 0.0
    """The sum of the squared runtimes."""
    longest: float = 0.0
    """The longest runtime of a finished task."""
    not_enough: float = 0.0
    """The longest time after which a task was still unfinished."""
    cut: dict[int, float] = {}
    """Longest run of each unfinished task that was cut at its pilot's end."""

    @property
    def mean(self) -> float:
        """Mean runtime of the finished tasks; 0: none has finished."""
        return self.total / self.finished if self.finished else 0.0

    @property
    def cut_after(self) -> float:
        """The mean of the longest runs of the unfinished tasks that were cut; 0: none was."""
        return sum(self.cut.values()) / len(self.cut) if self.cut else 0.0


class RuntimeRule(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a `RuntimeLearner`: how one learns at a site."""

    initial: float
    factor: int
    longest: float
    even_odds: bool = False

    def learner(self, learned: LearnedRuntimes | None = None) -> RuntimeLearner:
        """A learner by this rule that continues from what another one knew."""
        return RuntimeLearner(
            initial=self.initial,
            factor=self.factor,
            longest=self.longest,
            even_odds=self.even_odds,
            learned=learned,
        )


class RuntimeLearner:
    """Learns the task runtime of one bag at one site (De Rose et al. 2008, §4.3.1).

    "The adaptive heuristic makes an initial estimate (based on a default time). If tasks could be
    successfully finished in this time, the estimated runtime will be the runtime of the longest task.
    If the requested time is not enough to run tasks, the estimated task runtime will be the requested
    time multiplied by an integer factor."

    The paper does not say how the two rules combine in a mixed bag. Here a time that was not enough
    raises the estimate of the whole bag until a task that ran at least as long has finished. From then
    on the estimate is the longest finished task again, and only the cut tasks themselves need more.
    All times are seconds. Memory grows with the number of cut tasks only.
    """

    def __init__(
        self,
        *,
        initial: float,
        factor: int,
        longest: float,
        learned: LearnedRuntimes | None = None,
        even_odds: bool = False,
    ) -> None:
        """Args:
            initial: the estimate before the first task has finished.
            factor: multiplies a time that was not enough.
            longest: the longest task that a request of the site can hold (maxTr less the pad).
            learned: what an earlier learner knew.
            even_odds: whether tasks may start although they are as likely as not to be cut (see `even`).

        Raises:
            ValueError: the factor is not an integer of 2 or more.
        """
        if factor < 2 or factor != int(factor):
            raise ValueError(f"the growth factor must be an integer of 2 or more, not {factor!r}")
        known = learned or LearnedRuntimes()
        self._even_odds = even_odds
        self._initial, self._factor, self._possible = initial, factor, longest
        self._finished, self._total, self._squares = known.finished, known.total, known.squares
        self._longest = known.longest
        self._cut = dict(known.cut)
        self.outlasted = max(known.not_enough, *known.cut.values(), 0.0)
        """The longest time after which a task was still unfinished, seconds."""

    @property
    def learned(self) -> LearnedRuntimes:
        """The present state, for another learner to continue from."""
        return LearnedRuntimes(
            finished=self._finished,
            total=self._total,
            squares=self._squares,
            longest=self._longest,
            not_enough=self.outlasted,
            cut=self._cut.copy(),
        )

    @property
    def rule(self) -> RuntimeRule:
        """Rule by which it learns, with the present initial estimate."""
        return RuntimeRule(
            initial=self._initial, factor=self._factor, longest=self._possible, even_odds=self._even_odds
        )

    def suppose(self, estimate: float) -> None:
        """Replace the initial estimate, for example by that of another site, until a task finishes here."""
        self._initial = estimate

    def finished(self, runtime: float, task: int | None = None) -> None:
        """Learn from a finished task; given its number, forget its earlier cuts too."""
        self._finished += 1
        self._total += runtime
        self._squares += runtime * runtime
        self._longest = max(self._longest, runtime)
        if task is not None:
            self.forget(task)

    def finished_together(self, count: int, total: float, squares: float, longest: float) -> None:
        """Learn from `count` finished tasks, by the sums of their runtimes and of the squared runtimes."""
        self._finished += count
        self._total += total
        self._squares += squares
        self._longest = max(self._longest, longest)

    def cut(self, task: int, ran: float) -> None:
        """Learn that a task was still unfinished after `ran` seconds, when its pilot ended.

        After an earlier cut, the pilot may have been planned for the longest possible task. If the task
        then had most of that time, it counts as having had all of it.
        """
        before = self._cut.get(task, 0.0)
        planned_for_longest = self._factor * before >= self._possible
        had_most = ran >= MOST * self._possible
        if planned_for_longest and had_most:
            ran = max(ran, self._possible)
        self._cut[task] = max(ran, before)
        self.outlasted = max(self.outlasted, ran)

    @property
    def knows(self) -> bool:
        """True if a task has finished, or was cut: the estimate is no longer the initial one."""
        return self._finished > 0 or self.outlasted > 0

    def forget(self, task: int) -> None:
        """Forget the cuts of a task that will not run again, unless nothing else is known of the bag."""
        ran = self._cut.pop(task, 0.0)
        was_longest_cut = ran == self.outlasted
        outlasts_finished_tasks = ran > self._longest
        if self._finished and was_longest_cut and outlasts_finished_tasks:
            self.outlasted = max(self._cut.values(), default=0.0)

    @property
    def estimate(self) -> float:
        """The estimated runtime of a task that was never cut."""
        known = self._longest if self._finished else self._initial
        outlasts_finished_tasks = self.outlasted > self._longest
        had_the_estimate = self.outlasted >= NEARLY * known
        if outlasts_finished_tasks and had_the_estimate:
            known = self._factor * max(self.outlasted, known)
        return self.possible(known)

    @property
    def even(self) -> float:
        """Seconds in which a task that was never cut ends as likely as not; never above the estimate.

        While more tasks wait than run, a slot that has no time left for the longest of them loses nothing by
        a task that may be cut: it begins again elsewhere, where there is time for the longest.
        """
        finished, total = self.odds or (0, 0.0)
        return min(self.estimate, total / finished) if finished >= ENOUGH else self.estimate

    @property
    def odds(self) -> tuple[int, float] | None:
        """Finished tasks and the sum of their runtimes, from which `even` follows once there are `ENOUGH`;
        None: no task starts at even odds, or one is known to need longer than those."""
        outlasted = self.outlasted > self._longest
        return (self._finished, self._total) if self._even_odds and not outlasted else None

    def estimate_of(self, task: int, *, even: bool = False) -> float:
        """The estimated runtime of one task, its own cuts included; or of one that was never cut `even`."""
        if even and task not in self._cut:
            return self.even
        return max(self.estimate, self.needed_by(task))

    def possible(self, runtime: float) -> float:
        """A runtime as far as a request can hold it, seconds."""
        return max(SHORTEST, min(runtime, self._possible))

    def needed_by(self, task: int) -> float:
        """The least runtime that follows from the task's own cuts alone."""
        factor = CUT_AT_EVEN_ODDS if self._even_odds else self._factor
        return self.possible(factor * self._cut.get(task, 0.0))

    @property
    def cut_tasks(self) -> Set[int]:
        """Unfinished tasks that a pilot's end cut: only these may need more than `estimate`."""
        return self._cut.keys()

    def hopeless(self, task: int) -> bool:
        """True if the task was cut after (nearly) the longest time that the site allows."""
        return self._cut.get(task, 0.0) >= NEARLY * self._possible

    @property
    def mean(self) -> float | None:
        """Mean runtime of the finished tasks in seconds; None before the first."""
        return self._total / self._finished if self._finished else None
