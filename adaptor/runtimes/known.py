"""All that is known of the runtimes of some tasks, in running sums: no step looks at single tasks. Pure.

Of one bag or of several that share pilots, at a site or at all of them: what has finished, what runs and what
was cut, what the user says, and what earlier bags of the kind took. All rules ask it.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from statistics import NormalDist

import msgspec

from adaptor.runtimes.normal import excess

PRIOR = 2  # finished tasks that the assumption of an exponential distribution counts for
ENOUGH = 8  # finished tasks that say what another one takes
MANY = 64  # finished tasks that speak for the others, however many still run
HINTED_TASKS = ENOUGH  # finished tasks for which a mean by the user or by earlier bags counts
_HINTED = 0.5
"""The coefficient of variation that is assumed of runtimes whose mean is known, before enough have finished.

With that of exponential ones (1) equal tasks take half as long again; with 0.5 heavy tails leave a few over.
"""
_SHOW_SPREAD = 10  # tasks that show how far normal runtimes spread
_ROUNDS = 6  # of expectation and maximisation
_SHORTEST = 1e-3  # least mean runtime in seconds, should a clock have been set back
SAID_WITHIN = 2.0  # factor within which the mean that a user says is expected (one standard deviation)
_LONGER = 1.5  # deviations by which a long task is longer than the mean
ALIKE = 1.02  # runtimes within this factor are alike
_UNIFORM = 0.07
"""The share of the weight that stays equal for all runtimes: as many bags of a kind have a mean that is off
that of the earlier ones by a factor of ten (`lab/campaign/earlier_bags.py`, three traces)."""
_REACH = 8.0
"""A predicted mean divided by this is the shortest runtime to consider, where that is shorter than usual."""
_OUT_OF_REACH = 1e-3
"""The sum of the weights of the runtimes still possible, below which a predicted one says nothing of them."""
_FIRST = 60.0
"""The shortest runtime in seconds to consider before anything is known, where requests last as usual."""


class Belief(msgspec.Struct, frozen=True):
    """One possible distribution of the runtimes, in seconds."""

    mean: float
    longest: float
    weight: float = 1.0
    """Weight of the belief; the weights of all beliefs make 1."""

    @property
    def alike(self) -> bool:
        """Whether all tasks run equally long."""
        return self.longest <= self.mean * ALIKE


class EarlierTasks(msgspec.Struct, frozen=True, kw_only=True):
    """Runtimes of earlier bags of the same kind of task at this site. Times in seconds."""

    kind: str
    """The kind's name for people, e.g. `fit.py`."""
    tasks: int
    """Finished tasks that the figures come from."""
    mean: float
    """Geometric mean of the mean runtimes of the earlier bags, newest weighted most."""
    factor: float
    """The factor within which the mean of a new bag is expected (one standard deviation), at least 2."""
    low: float
    high: float
    """The 5 % and 95 % quantiles of the tasks."""


class KnownRuntimes(msgspec.Struct, kw_only=True):
    """Runtimes in seconds, instants in epoch seconds; the attempts in a journal rebuild it."""

    finished: int = 0
    total: float = 0.0
    squares: float = 0.0
    """The sum of the squared runtimes."""
    longest: float = 0.0
    """The longest runtime of a finished task."""
    not_enough: float = 0.0
    """The longest time after which a task was still unfinished, when its pilot ended."""
    cut: int = 0
    """Unfinished tasks that the end of their pilot cut."""
    cut_for: float = 0.0
    """The sum of the longest times that these ran."""
    running: int = 0
    starts: float = 0.0
    """The sum of the instants at which the running tasks started."""
    first_start: float | None = None
    """The earliest of these; None: none runs, or it is not known."""
    told: float | None = None
    """The runtime that the user expects of a task; None: unknown."""
    earlier: EarlierTasks | None = None
    """Earlier bags of the same kind; None: none are known."""
    ended_after: float = math.inf
    """Seconds after which each task is ended, finished or not; infinity: it is not known of all."""

    def add(self, runtime: float) -> None:
        """A task finished that was not counted as running."""
        self.add_all(1, runtime, runtime * runtime, runtime)

    def add_all(self, count: int, total: float, squares: float, longest: float) -> None:
        """Tasks finished that were not counted as running, by the sums of their runtimes and squares."""
        self.finished += count
        self.total += total
        self.squares += squares
        self.longest = max(self.longest, longest)

    def start(self, at: float) -> None:
        self.running += 1
        self.starts += at

    def finish(self, started: float, runtime: float) -> None:
        self.stop(started)
        self.add(runtime)

    def running_since(self, starts: Collection[float]) -> KnownRuntimes:
        """These, with the tasks that run since these instants and no others."""
        return msgspec.structs.replace(
            self, running=len(starts), starts=sum(starts), first_start=min(starts, default=None)
        )

    def stop(self, started: float) -> None:
        """A running task was interrupted: it will start again."""
        self.running -= 1
        self.starts -= started
        if not self.running:
            self.starts = 0.0

    def not_started(self, tasks: int) -> int:
        """Number of tasks among `tasks` that have not finished and do not run."""
        return max(0, tasks - self.finished - self.running)

    @property
    def hint(self) -> float | None:
        """Seconds of a task by its user, else by earlier bags of its kind; None: nothing is known."""
        return self.told or (self.earlier.mean if self.earlier else None)

    @property
    def hint_within(self) -> float:
        """The factor within which the mean is expected by the hint (one standard deviation)."""
        return SAID_WITHIN if self.told or self.earlier is None else self.earlier.factor

    @property
    def known(self) -> bool:
        """Whether a task has finished, or its user or earlier bags say what one takes."""
        return self.finished > 0 or self.told is not None or self.earlier is not None

    @property
    def enough(self) -> bool:
        """Whether enough have finished to say what another one takes."""
        return self.missing_for(1) <= 0

    def missing_for(self, others: int) -> int:
        """Tasks that have yet to finish to outweigh others, of which only a least runtime is known; none: 0
        or less."""
        return ENOUGH * max(1, others) - self.finished

    def outnumbered_by(self, others: int) -> bool:
        """Whether no more than a third have finished, too few to speak for others that may take longer."""
        return self.finished < MANY and 2 * self.finished <= others

    @property
    def mean(self) -> float:
        """Mean of the finished tasks; 0 before the first (A²HA Fig. 3, line 4)."""
        return self.total / self.finished if self.finished else 0.0

    @property
    def cut_after(self) -> float:
        """Mean of the longest times that the unfinished tasks ran which were cut; 0: none was."""
        return self.cut_for / self.cut if self.cut else 0.0

    def age(self, now: float) -> float:
        """Mean age of the running tasks (A²HA Fig. 7, line 4); 0 if none runs."""
        return max(0.0, now - self.starts / self.running) if self.running else 0.0

    def oldest(self, now: float) -> float:
        """Age of the first of the running tasks; 0 if none runs."""
        return 0.0 if self.first_start is None else max(0.0, now - self.first_start)

    def outlasted(self, now: float) -> float:
        """The longest time after which a task was still unfinished, or is."""
        return max(self.oldest(now), self.not_enough)

    def longest_seen(self, now: float) -> float:
        """The longest time for which a task has run, finished or not."""
        return max(self.longest, self.outlasted(now))

    def _unfinished(self, now: float, running: int) -> tuple[tuple[int, float], ...]:
        """Number and mean age of the tasks that run, and of those that were cut."""
        return (running, self.age(now)), (self.cut, self.cut_after)

    def overdue(self, now: float, running: int) -> int:
        """Number of unfinished tasks that have run as long as the finished ones took on average.

        Args:
            running: tasks that run now.
        """
        return sum(count for count, ran in self._unfinished(now, running) if ran * ALIKE > self.mean)

    def corrected_mean(self, now: float) -> float:
        """The average where the running tasks have run longer than the finished ones took (A²HA Fig. 7).

        Lines 11 and 12 divide the sum of two means by the number of tasks, which is no time. What is meant
        is taken to be the mean over all tasks, finished and running: sums, divided by their number.
        """
        return self.with_long_ones(now).mean

    def expected(self, now: float) -> float:
        """Mean of a task. The first to finish are short ones, the more so the more the runtimes differ.

        Of equal tasks it is the mean of the finished ones; of exponential ones the time of all divided by the
        number of those that have finished, which is their maximum-likelihood estimate. With a hint, and
        before any has finished, tasks that run longer than the others count as they are.
        """
        if self.hint is not None or not self.finished:
            return self.with_hint.corrected_mean(now)
        spread = min(1.0, self.with_long_ones(now).variation)
        return self.mean + spread * self.running * self.age(now) / self.finished

    def normal(self, now: float, mean: float, deviation: float, weight: int = 0) -> tuple[float, float]:
        """Mean and deviation of a task, where runtimes are normal.

        Short tasks finish first, so the finished ones alone would look too short; the running ones are
        counted with the runtime to be expected of one of their mean age (expectation-maximisation for
        censored normal values). So a site whose tasks never finish looks worse with every step.

        Args:
            mean, deviation: assumed before any has finished.
            weight: finished tasks for which these count.
        """
        total = weight * mean + max(self.total, _SHORTEST * self.finished)
        squares = weight * (mean**2 + deviation**2) + max(self.squares, _SHORTEST * self.total)
        spread, age, found = deviation / mean, self.age(now), (mean, deviation)
        for running in (0, *[self.running] * _ROUNDS) if self.running else (0,):
            number = weight + self.finished + running
            if not number:
                continue
            further, variance = excess(*found, age)
            average = (total + running * (age + further)) / number
            # Too few to say how far they spread: as assumed, in proportion.
            if self.finished + running < _SHOW_SPREAD and weight < _SHOW_SPREAD:
                found = average, spread * average
            else:
                all_squares = squares + running * ((age + further) ** 2 + variance)
                found = average, math.sqrt(max(0.0, all_squares / number - average**2))
        return found

    def with_long_ones(self, now: float) -> KnownRuntimes:
        """Running tasks count as finished where they have run longer than the finished ones took."""
        age = self.age(now)
        if age <= self.mean:
            return self
        return msgspec.structs.replace(
            self,
            finished=self.finished + self.running,
            total=self.total + self.running * age,
            squares=self.squares + self.running * age**2,
        )

    @property
    def with_hint(self) -> KnownRuntimes:
        """These, with some finished tasks more for what the user or earlier bags say."""
        hint = self.hint
        if hint is None:
            return self
        return msgspec.structs.replace(
            self,
            finished=self.finished + HINTED_TASKS,
            total=self.total + HINTED_TASKS * hint,
            squares=self.squares + HINTED_TASKS * (1 + _HINTED**2) * hint**2,
        )

    @property
    def deviation(self) -> float:
        """Standard deviation of a sample; 0 before the second finished task."""
        if self.finished < 2:
            return 0.0
        spread = self.squares - self.total * self.total / self.finished
        return math.sqrt(max(0.0, spread) / (self.finished - 1))

    @property
    def residual(self) -> float:
        """Mean time left of a task at a random instant of it: E[T²] / 2 E[T]; 0: nothing is known."""
        known = self.with_hint
        return known.squares / (2 * known.total) if known.total else 0.0

    def long_task(self, now: float, mean: float) -> float:
        """Seconds of a long task where tasks take `mean`; one that runs may have run for longer already."""
        return max(self.oldest(now), mean * (1 + _LONGER * self.variation))

    @property
    def variation(self) -> float:
        """The coefficient of variation, mixed with an assumed one while few are known: that of an
        exponential distribution (1), or less if the mean is known beforehand."""
        assumed, known = 1.0 if self.hint is None else _HINTED, max(1, self.finished)
        found = self.deviation / self.mean if self.mean else 0.0
        return math.sqrt((PRIOR * assumed * assumed + (known - 1) * found * found) / (PRIOR + known - 1))

    def deviating(self, further: int, certainty: float) -> float:
        """Factor by which the mean of `further` tasks is larger than that of the finished ones, at most."""
        known = 1 / max(1, self.finished) + 1 / max(1, further)
        return math.exp(NormalDist().inv_cdf(certainty) * self.variation * math.sqrt(known))

    def beliefs(self, now: float, running: int, possible: float, usual_share: float) -> list[Belief]:
        """Beliefs about the runtimes: one once enough tasks have finished, before that a ladder of them.

        The rungs are `60 s × 2^k`, all equally likely. If the runtime is known from the user or from earlier
        bags of the kind, the rungs are closer and most of the weight is near that time. Rungs that a task has
        outlasted, and rungs beyond its time-out, are left out. Tasks that still run or were cut count with
        half of what they may still need. Otherwise the short tasks, which finish first, would speak for all.

        Args:
            running: tasks that run now.
            possible: seconds of the longest task that a request can hold.
            usual_share: as of `SiteRules`.
        """
        possible, longer = min(possible, self.ended_after), self.overdue(now, running)
        if self.finished and not self.outnumbered_by(longer):
            return [self._learned(now, running, longer, possible)]
        return self._ladder(max(_FIRST * usual_share, 1.0), self.outlasted(now), possible)

    def _learned(self, now: float, running: int, longer: int, possible: float) -> Belief:
        """Belief from the finished tasks, and those that run or were cut. The longest task follows from the
        rate at which tasks finished: the `longer` ones are left, and one more that was not seen yet."""
        until, outlasted = self.longest_seen(now), self.outlasted(now)
        if self.longest <= self.mean * ALIKE and outlasted <= self.longest * ALIKE:
            return Belief(self.mean, self.longest)
        others = self._unfinished(now, running)
        rate = self.finished / (until - min(self.mean, max(0.0, 2 * self.mean - until)))
        longest = min(possible, max(1.1 * outlasted, until + (longer + 1) / rate))
        total = sum(count * (min(ran, longest) + longest) / 2 for count, ran in others)
        mean = (self.finished * self.mean + total) / (self.finished + sum(count for count, _ in others))
        return Belief(min(mean, longest / ALIKE**2), longest)

    def _ladder(self, first: float, outlasted: float, possible: float) -> list[Belief]:
        """Rungs of runtimes; those near the user's word, or else near earlier bags of the same kind, weigh
        most."""
        expected = self.hint
        if not expected:
            middle, step, below = first, 2.0, 0
        else:
            least = min(first, max(1.0, expected / _REACH))
            middle, step, below = (
                expected,
                math.sqrt(2.0),
                max(0, math.floor(2 * math.log2(expected / least))),
            )
        above = math.floor(math.log(max(1.0, possible / middle), step) + 1e-9)
        rungs = [middle * step**place for place in range(-below, above + 1)]
        rungs = [rung for rung in rungs if outlasted < rung <= possible] or [possible]
        near = [
            math.exp(-((math.log(rung / middle) / math.log(self.hint_within)) ** 2) / 2) for rung in rungs
        ]
        uniform, total = _UNIFORM, sum(near)
        if not expected or total < _OUT_OF_REACH:  # the tasks have outlasted it by far
            uniform, total = 1.0, math.inf
        weights = [uniform / len(rungs) + (1 - uniform) * weight / total for weight in near]
        return [Belief(rung, rung, weight) for rung, weight in zip(rungs, weights, strict=True)]

    def may_outlast(
        self, seconds: float, now: float, running: int, possible: float, usual_share: float
    ) -> bool:
        """Whether a task that runs may need more than this number of seconds from now on.

        As long as few have finished, nothing speaks against it, unless these and those that run are alike.
        The other arguments are those of `beliefs`.
        """
        found, age = self.beliefs(now, running, possible, usual_share), self.age(now)
        if self.finished and age <= self.longest and all(belief.alike for belief in found):
            return False
        return self.outnumbered_by(running) or max(belief.longest for belief in found) - age > seconds
