"""When requests complete a bag, by each belief of the runtimes. Pure; times are seconds from now on."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from adaptor.crafting.completion.beliefs import Belief
from adaptor.crafting.fits import TINY

LAST = 0.3
"""Tasks that a slot finishes after it has started its last one: that one, if it takes no longer than most,
beside what was left of the one before (for runtimes spread evenly from 0.25 to 1.75 of their mean)."""
FINE = 1.005
INSTANTS = [FINE**place for place in range(6_000)]
"""Completions are places in this grid, from 1 to 10^13 s: a mean of places is a geometric mean of times."""
NEVER = len(INSTANTS) - 1
_COARSE = [30.0 * 1.4**place for place in range(48)]
"""Seconds after the end of a request for which is kept what follows it."""


class Member(NamedTuple):
    """A request that runs, waits or may be made."""

    start: float
    """0: it runs, or starts now."""
    length: float
    """Seconds that are left of it."""
    slots: int
    age: float = 0.0
    """Mean seconds for which its present tasks have run; 0: it has none yet."""


class Curve(NamedTuple):
    """A member by one belief: a slot finishes a task every `mean` s from `begin` on, all of them `most`."""

    begin: float
    end: float
    slots: int
    most: float


class Progress:
    """What members finish by one belief."""

    def __init__(self, belief: Belief, weight: float, tasks: int, pad: float, pace: float) -> None:
        """
        Args:
            weight: of the belief; those of all make 1.
            tasks: of the bag, those that run included.
            pad: seconds of a request without tasks.
            pace: the speed of requests made later, in parts of that of the same requests made now.
        """
        self.weight, self.tasks = weight, float(tasks)
        self._mean, self._alike, self._longest = belief.mean, belief.alike, belief.longest
        self._pad, self._pace = pad, pace
        self._later: list[tuple[float, float]] = []
        """By step of the coarse grid: tasks that follow within t seconds, as `a + b * t`."""
        self._curves: dict[Member, Curve] = {}

    def curve(self, member: Member) -> Curve:
        """Where all tasks are alike they end together; else a slot finishes one every `mean` seconds, and
        starts others until no more than that is left (`learning.RuntimeLearner.even`)."""
        found = self._curves.get(member)
        if found is None:
            found = self._curves[member] = self._curve(*member)
        return found

    def _curve(self, start: float, length: float, slots: int, age: float) -> Curve:
        mean, longest = self._mean, self._longest
        begin, end = start, start + length
        if not age:
            begin += self._pad
            length -= self._pad
        if self._alike:
            return Curve(begin - age, end, slots, slots * max(0.0, (length + age + TINY) // mean))
        most = (length - mean) / mean + LAST
        if age:
            first = 1.0 + (length - longest) / mean if length > longest else length / longest
            return Curve(begin, end, slots, slots * max(first, most))
        return Curve(begin + mean / 2, end, slots, slots * (max(1.0, most) if length >= longest else 0.0))

    def foresee(self, offers: Sequence[Member]) -> None:
        """Keep what follows a request when it ends: the most tasks that one of these offers after the other
        finishes up to each time of a coarse grid, if the holes of now come again."""
        curves = sorted(curve for offer in offers if (curve := self.curve(offer)).most > 0)
        begins = [curve.begin for curve in curves]
        best, since = 0.0, 0.0
        for at in _COARSE:
            more = max(best, self.done(curves[: bisect_left(begins, at)], at, largest=True))
            if self._later:
                slope = (more - best) / (at - since)
                self._later[-1] = best - slope * since, slope
            self._later.append((0.0, more / at))  # beyond the table the speed stays
            best, since = more, at
            if best >= self.tasks:
                return

    def done(
        self, curves: Iterable[Curve], at: float, pace: float | None = None, *, largest: bool = False
    ) -> float:
        """Tasks that members, and the requests made when they end, have finished at a time.

        Args:
            pace: of these requests, where it is another.
            largest: the tasks of the member that has finished most, instead of those of all.
        """
        mean, alike, later, total = self._mean, self._alike, self._later, 0.0
        for begin, end, slots, most in curves:
            if at <= begin and at < end:
                continue
            if at < end:
                each = (at - begin + TINY) / mean
                done = slots * (each // 1 if alike else each)
                if done > most:
                    done = most
            else:
                done, seconds = most, (pace or self._pace) * (at - end)
                step = bisect_right(_COARSE, seconds, 0, len(later)) - 1
                if step >= 0:
                    constant, slope = later[step]
                    done += constant + slope * seconds
            if not largest:
                total += done
            elif done > total:
                total = done
        return total


class RequestSet:
    """Requests together."""

    def __init__(
        self,
        by_belief: Sequence[Progress],
        members: Sequence[Member],
        *,
        alone: bool = False,
        places: list[int] | None = None,
    ) -> None:
        """
        Args:
            alone: only one request is allowed at a time, so that what follows it is all that counts where it
                holds no task by a belief.
            places: the completions, where they are known.
        """
        self._by_belief, self._alone = by_belief, alone
        self.members = list(members)
        self._curves = [[progress.curve(member) for member in members] for progress in by_belief]
        self._known: list[dict[float, float]] = [{} for _ in by_belief]
        self.places = places or self._completions()
        """By belief: the place in the grid of the first instant at which all tasks are done."""
        self.worth = self._mean(self.places)
        """The expected completion as a place in the grid: its geometric mean, so that no belief outweighs
        the others."""

    @property
    def cost(self) -> float:
        """The expected completion in seconds."""
        return math.exp(self.worth * math.log(FINE))

    @property
    def ends(self) -> list[float]:
        """By belief: seconds until the bag is done."""
        return [INSTANTS[place] for place in self.places]

    def joined(self, member: Member, places: list[int] | None = None) -> RequestSet:
        """The set with one more; `places`: the completions with it, where they are known."""
        return RequestSet(self._by_belief, [*self.members, member], alone=self._alone, places=places)

    def at_pace(self, pace: float) -> float:
        """What the set is worth if the requests that follow have this speed."""
        return self._mean(self._completions(pace))

    def best_addition(
        self, members: Sequence[Member], least: float, marks: list[int] | None = None
    ) -> tuple[int, list[int]] | None:
        """Which one of these shortens the completion most, and the completions with it; None: none by more
        than `least` places.

        The first of several counts for nothing by a belief whose tasks it cannot hold: so one is there for
        long tasks before others are for short ones. Only where one is sooner than the best so far by some
        belief, it is compared by all.

        Args:
            marks: the completions to improve on; None: those without any of them.
        """
        best, marks = None, marks or self.places
        for number, member in enumerate(members):
            found = self._better(member, marks, least if best is None else 0.0)
            if found is not None:
                best, marks = (number, found), found
        return best

    def _better(self, member: Member, marks: Sequence[int], least: float) -> list[int] | None:
        """The completions with one more; None: they are not sooner than `marks` by more than `least`."""
        found, gain, others = list(marks), 0.0, []
        any_counts = self._alone or bool(self.members)
        for which, progress in enumerate(self._by_belief):
            curve, mark = progress.curve(member), marks[which]
            before = INSTANTS[mark - 1]
            counts = any_counts or curve.most > 0
            if counts and curve.begin < before and self._done(which, curve, before) >= progress.tasks:
                found[which] = self._first(which, curve, 0, mark - 1)
                gain += progress.weight * (mark - found[which])
            elif mark < self.places[which]:
                others.append((which, curve, counts))
        for which, curve, counts in others:
            if gain <= least:
                return None
            latest = self.places[which]
            found[which] = self._first(which, curve, marks[which], latest) if counts else latest
            gain -= self._by_belief[which].weight * (found[which] - marks[which])
        return found if gain > least else None

    def _first(self, which: int, curve: Curve, low: int, high: int) -> int:
        """The first place at which all tasks are done by one belief with one curve more."""
        tasks = self._by_belief[which].tasks
        return bisect_left(INSTANTS, tasks, low, high, key=lambda at: self._done(which, curve, at))

    def _done(self, which: int, curve: Curve, at: float) -> float:
        """Tasks that are done at a time by one belief with one curve more."""
        progress, known = self._by_belief[which], self._known[which]
        there = known.get(at)
        if there is None:
            there = known[at] = progress.done(self._curves[which], at)
        return there + progress.done((curve,), at)

    def _completions(self, pace: float | None = None) -> list[int]:
        return [
            bisect_left(INSTANTS, progress.tasks, 0, NEVER, key=lambda at: progress.done(curves, at, pace))
            if curves
            else NEVER
            for progress, curves in zip(self._by_belief, self._curves, strict=True)
        ]

    def _mean(self, places: Sequence[int]) -> float:
        return sum(progress.weight * place for progress, place in zip(self._by_belief, places, strict=True))
