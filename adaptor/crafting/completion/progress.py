"""Times at which requests complete a bag, by each belief of the runtimes. Pure; times are seconds from now
on."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache

from adaptor.crafting.fits import TINY
from adaptor.crafting.situation import Member
from adaptor.runtimes.known import Belief

FINE = 1.005
INSTANTS = [FINE**step for step in range(6_000)]
"""Completions are steps of this grid, from 1 to 10^13 s: a mean of steps is a geometric mean of times."""
NEVER = len(INSTANTS) - 1
_COARSE = [30.0 * 1.4**step for step in range(48)]
"""Seconds after the end of a request at which the table of what follows it has its entries."""


Curve = tuple[float, float, float, float]
"""A member by one belief, as `(begin, end, slots, most)`: a slot finishes a task every `mean` s from `begin`
on, all of them `most`."""


class Progress:
    """The tasks that members finish by one belief."""

    def __init__(self, belief: Belief, tasks: int, pad: float, pace: float) -> None:
        """`tasks`: number of tasks, running ones included; `pad`: seconds of each request without tasks.

        `pace`: the speed of requests made later, in parts of that of the same requests made now.
        """
        self.weight, self.tasks = belief.weight, float(tasks)
        self._mean, self._alike, self._longest = belief.mean, belief.alike, belief.longest
        self._pad, self._pace = pad, pace
        self._later: list[tuple[float, float]] = []
        """Tasks that follow within t seconds, as `a + b * t`, by step of the coarse grid."""
        self.curve = cache(self._curve)

    def _curve(self, member: Member) -> Curve:
        """Begin and end of the time in which a member finishes tasks, its slots, and the tasks that it
        finishes. If all tasks are alike they end together; else a slot finishes one every `mean` seconds, and
        starts others until no more than that is left (`RuntimeLearner.even`). Running tasks end at any time
        up to the longest, all equally likely."""
        start, length, slots, age = member
        mean, longest = self._mean, self._longest
        begin, end = start, start + length
        if not age:
            begin += self._pad
            length -= self._pad
        if self._alike:
            return begin - age, end, slots, slots * max(0.0, (length + age + TINY) // mean)
        if age:
            left = max(longest - age, TINY)
            most = max(min(1.0, length / left), (length - left / 2) / mean)
            return begin + (left - mean) / 2, end, slots, slots * most
        most = (length - mean) / mean
        return begin + mean / 2, end, slots, slots * (max(1.0, most) if length >= longest else 0.0)

    def foresee(self, offers: Sequence[Member]) -> None:
        """Make the table of what follows a request when it ends: the most tasks that one of these offers
        after the other finishes up to each time of the coarse grid, if the holes of now come again."""
        curves = sorted(curve for offer in offers if (curve := self.curve(offer))[3] > 0)
        best, since = 0.0, 0.0
        for at in _COARSE:
            begun = curves[: bisect_left(curves, (at,))]
            more = max([best, *(self.done_by(curve, at) for curve in begun)])
            if self._later:
                slope = (more - best) / (at - since)
                self._later[-1] = best - slope * since, slope
            self._later.append((0.0, more / at))  # beyond the table the speed stays
            best, since = more, at
            if best >= self.tasks:
                return

    def done(self, curves: Sequence[Curve], at: float, pace: float | None = None) -> float:
        """Tasks that members, and the requests made when they end, at this pace, have finished at a time."""
        total = 0.0
        for curve in curves:
            total += self.done_by(curve, at, pace)
        return total

    def done_by(self, curve: Curve, at: float, pace: float | None = None) -> float:
        """The part of one of them."""
        begin, end, slots, most = curve
        if at >= end:
            seconds = (pace or self._pace) * (at - end)
            if seconds >= _COARSE[0] and self._later:
                constant, slope = self._later[bisect_right(_COARSE, seconds, 0, len(self._later)) - 1]
                most += constant + slope * seconds
            return most
        if at <= begin:
            return 0.0
        rounds = (at - begin + TINY) / self._mean
        done = slots * (rounds // 1 if self._alike else rounds)
        return most if done > most else done


class RequestSet:
    """Requests together, and by belief when they complete the bag."""

    def __init__(
        self,
        by_belief: Sequence[Progress],
        members: Sequence[Member],
        steps: list[int] | None = None,
        pace: float | None = None,
    ) -> None:
        """`steps`: the completions, where they are known; `pace`: of later requests, if not the usual."""
        self._by_belief, self.members, self._pace = by_belief, members, pace
        self._curves = [[progress.curve(member) for member in members] for progress in by_belief]
        self._done: list[dict[int, float]] = [{} for _ in by_belief]
        """Tasks that are done, by belief and step."""
        self.steps = steps or [self._first(which, 0, NEVER) for which in range(len(by_belief))]
        """First step of the grid at which all tasks are done, by belief."""
        self.worth = sum(progress.weight * step for progress, step in zip(by_belief, self.steps, strict=True))
        """The expected completion as a step of the grid: its geometric mean, so that no belief outweighs
        the others."""

    @property
    def cost(self) -> float:
        """The expected completion in seconds."""
        return math.exp(self.worth * math.log(FINE))

    @property
    def ends(self) -> list[float]:
        """Seconds until the bag is done, by belief."""
        return [INSTANTS[step] for step in self.steps]

    def at_pace(self, pace: float) -> float:
        """The worth of the set if the requests that follow have this speed."""
        return RequestSet(self._by_belief, self.members, pace=pace).worth

    def best_addition(
        self, offers: Sequence[Member], least: float, marks: list[int], *, alone: bool
    ) -> tuple[int, list[int]] | None:
        """The number of the offer that shortens the completion most, and the completions with it.

        None: with no offer it is sooner than `marks` by more than `least` steps. The first of several
        requests counts for nothing by a belief whose tasks it cannot hold, so that a request for long tasks
        comes before others for short ones. Where a request is `alone`, what follows it is all that counts.
        """
        best, any_counts = None, alone or bool(self.members)
        for number, offer in enumerate(offers):
            found = self._better(offer, marks, least, any_counts)
            if found is not None:
                best, marks, least = (number, found), found, 0.0
        return best

    def _better(
        self, member: Member, marks: Sequence[int], least: float, any_counts: bool
    ) -> list[int] | None:
        """The completions with one member more; None: not sooner than `marks` by more than `least`.

        By how much it is later by some beliefs is only counted if it is sooner by others.
        """
        found, gain, others = list(marks), 0.0, []
        for which, progress in enumerate(self._by_belief):
            curve, mark = progress.curve(member), marks[which]
            counts = any_counts or curve[3] > 0
            if counts and curve[0] < INSTANTS[mark - 1] and self._is_done(which, mark - 1, curve):
                found[which] = self._first(which, 0, mark - 1, curve)
                gain += progress.weight * (mark - found[which])
            elif mark < self.steps[which]:
                others.append((which, curve, counts))
        for which, curve, counts in others:
            if gain <= least:
                return None
            latest = self.steps[which]
            found[which] = self._first(which, marks[which], latest, curve) if counts else latest
            gain -= self._by_belief[which].weight * (found[which] - marks[which])
        return found if gain > least else None

    def _first(self, which: int, low: int, high: int, curve: Curve | None = None) -> int:
        """The first of these steps at which all tasks are done by one belief, else `high`."""
        while low < high:
            middle = (low + high) // 2
            if self._is_done(which, middle, curve):
                high = middle
            else:
                low = middle + 1
        return low

    def _is_done(self, which: int, step: int, curve: Curve | None) -> bool:
        """Whether all tasks are done by one belief, with one curve more where one is given."""
        progress, known = self._by_belief[which], self._done[which]
        if step not in known:
            known[step] = progress.done(self._curves[which], INSTANTS[step], self._pace)
        more = progress.done_by(curve, INSTANTS[step]) if curve is not None else 0.0
        return known[step] + more >= progress.tasks
