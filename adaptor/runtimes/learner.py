"""The runtime of a bag's tasks, the estimate behind tr: learned from finished and from cut tasks."""

from __future__ import annotations

import msgspec

from adaptor.runtimes.known import KnownRuntimes

SHORTEST = 1.0  # seconds, the least estimate: an estimate of 0 would plan an infinite number of rounds
NEARLY = 0.95
"""A task that ran for this share of a time counts as having had all of it: ending a pilot takes the rest."""
MOST = 0.75
"""Share for a pilot that was planned for the longest time: its start may take more than the pad."""

CUT_AT_EVEN_ODDS = 1.1
"""Growth factor after a kill at the pilot's end if tasks may start at even odds: most killed tasks are not
longer than average."""


class RuntimeLearner(msgspec.Struct, kw_only=True):
    """Learns the task runtime of one bag at one site (De Rose et al. 2008, §4.3.1).

    "The adaptive heuristic makes an initial estimate (based on a default time). If tasks could be
    successfully finished in this time, the estimated runtime will be the runtime of the longest task.
    If the requested time is not enough to run tasks, the estimated task runtime will be the requested
    time multiplied by an integer factor."

    The paper does not say how the two rules combine in a mixed bag. Here a time that was not enough
    raises the estimate of the whole bag until a task that ran at least as long has finished, or `ENOUGH`
    for each task that was cut. From then on the estimate is the longest finished task again, and only the
    cut tasks themselves need more.
    All times are seconds. Memory grows with the number of cut tasks only.
    """

    initial: float
    """The estimate before the first task has finished, for example by another site; seconds."""
    factor: int
    """Factor on a time that was not enough."""
    longest: float
    """The longest task that a request of the site can hold (maxTr less the pad)."""
    freely: float | None = None
    """The estimate before the first task has finished that a budget has lowered; None: none has."""
    in_parts: bool = False
    """Whether it pays for requests in parts, which need not end with what it pays for a task."""
    even_odds: bool = False
    """Whether tasks may start although they are as likely as not to be cut (see `even`)."""
    seen: KnownRuntimes = msgspec.field(default_factory=KnownRuntimes)
    """Runtimes of what has finished, and the longest time after which a task was still unfinished."""
    cuts: dict[int, float] = {}
    """Longest run of each unfinished task that was cut at its pilot's end: only these may need more than
    `estimate`."""

    def __post_init__(self) -> None:
        """Raises ValueError: the factor is not an integer of 2 or more."""
        if self.factor < 2 or self.factor != int(self.factor):
            raise ValueError(f"the growth factor must be an integer of 2 or more, not {self.factor!r}")

    def copy(self) -> RuntimeLearner:
        """One that knows the same and learns on its own from here."""
        seen = msgspec.structs.replace(self.seen)
        return msgspec.structs.replace(self, seen=seen, cuts=self.cuts.copy())

    @property
    def known(self) -> KnownRuntimes:
        """Knowledge of all of its tasks."""
        return msgspec.structs.replace(self.seen, cut=len(self.cuts), cut_for=sum(self.cuts.values()))

    def finished(self, runtime: float, task: int | None = None) -> None:
        """Learn from a finished task; given its number, forget its earlier cuts too."""
        self.seen.add(runtime)
        if task is not None:
            self.forget(task)

    def cut(self, task: int, ran: float) -> None:
        """Learn that a task was still unfinished after `ran` seconds, when its pilot ended.

        After an earlier cut, the pilot may have been planned for the longest possible task. If the task
        then had most of that time, it counts as having had all of it.
        """
        before = self.cuts.get(task, 0.0)
        planned_for_longest = self.factor * before >= self.longest
        had_most = ran >= MOST * self.longest
        if planned_for_longest and had_most:
            ran = max(ran, self.longest)
        self.cuts[task] = max(ran, before)
        self.seen.not_enough = max(self.seen.not_enough, ran)

    @property
    def knows(self) -> bool:
        """True if a task has finished, or was cut: the estimate is no longer the initial one."""
        return self.seen.finished > 0 or self.seen.not_enough > 0

    @property
    def lowered(self) -> bool:
        """Whether a budget that pays in parts has lowered the estimate."""
        return self.freely is not None and self.in_parts and not self.knows

    @property
    def planned(self) -> float:
        """The runtime for which requests are made."""
        return self.assumed if self.lowered else self.estimate

    def forget(self, task: int) -> None:
        """Forget the cuts of a task that will not run again, unless nothing else is known of the bag."""
        ran = self.cuts.pop(task, 0.0)
        was_longest_cut = ran == self.seen.not_enough
        outlasts_finished_tasks = ran > self.seen.longest
        if self.seen.finished and was_longest_cut and outlasts_finished_tasks:
            self.seen.not_enough = max(self.cuts.values(), default=0.0)

    @property
    def assumed(self) -> float:
        """The estimate before the first task has finished, as far as a request can hold it, whatever a budget
        pays for."""
        return self.possible(self.initial if self.freely is None else self.freely)

    @property
    def estimate(self) -> float:
        """The estimated runtime of a task that was never cut."""
        known = self.seen.longest if self.seen.finished else self.initial
        if self.raised and self.seen.not_enough >= NEARLY * known:
            known = self.factor * max(self.seen.not_enough, known)
        return self.possible(known)

    @property
    def raised(self) -> bool:
        """Whether the tasks that were cut speak for those that were not: all may need longer than the
        longest finished one."""
        return self.seen.not_enough > self.seen.longest and self.seen.missing_for(len(self.cuts)) > 0

    @property
    def even(self) -> float:
        """Seconds in which a task that was never cut ends as likely as not; never above the estimate.

        While more tasks wait than run, a slot that has no time left for the longest of them loses nothing by
        a task that may be cut: it begins again elsewhere, where there is time for the longest.
        """
        enough = self.odds is not None and self.seen.enough
        return min(self.estimate, self.seen.mean) if enough else self.estimate

    @property
    def odds(self) -> tuple[int, float] | None:
        """Finished tasks and the sum of their runtimes, from which `even` follows once there are `ENOUGH`;
        None: no task starts at even odds, or one is known to need longer than those."""
        return (self.seen.finished, self.seen.total) if self.even_odds and not self.raised else None

    def estimate_of(self, task: int, *, even: bool = False) -> float:
        """The estimated runtime of one task, its own cuts included; or of one that was never cut `even`."""
        if even and task not in self.cuts:
            return self.even
        return max(self.estimate, self.needed_by(task))

    def possible(self, runtime: float) -> float:
        """A runtime as far as a request can hold it, seconds."""
        return max(SHORTEST, min(runtime, self.longest))

    def needed_by(self, task: int) -> float:
        """The least runtime that follows from the task's own cuts alone."""
        factor = CUT_AT_EVEN_ODDS if self.even_odds else self.factor
        return self.possible(factor * self.cuts.get(task, 0.0))

    def hopeless(self, task: int) -> bool:
        """True if the task was cut after (nearly) the longest time that the site allows."""
        return self.cuts.get(task, 0.0) >= NEARLY * self.longest
