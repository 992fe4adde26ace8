"""When requests complete a bag, by each belief of the runtimes. Pure; times are seconds from now on."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from adaptor.crafting.completion.beliefs import Belief
from adaptor.crafting.fits import TINY
from adaptor.crafting.situation import Member

LAST = 0.3
"""Expected tasks that a slot finishes after it has started its last one, for runtimes spread evenly over
0.25 to 1.75 of their mean: that task, where it is no longer than most, and the rest of the one before."""
FINE = 1.005
INSTANTS = [FINE**step for step in range(6_000)]
"""Completions are steps of this grid, from 1 to 10^13 s: a mean of steps is a geometric mean of times."""
NEVER = len(INSTANTS) - 1
_COARSE = [30.0 * 1.4**step for step in range(48)]
"""Seconds after the end of a request at which the table of what follows it has its entries."""


_K = TypeVar("_K")
_V = TypeVar("_V")


class _Known(dict[_K, _V], Generic[_K, _V]):
    """The values of a function, each computed when it is first asked for. A lookup makes no call."""

    def __init__(self, function: Callable[[_K], _V]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: _K) -> _V:
        value = self[key] = self._function(key)
        return value


class Curve(NamedTuple):
    """A member by one belief: a slot finishes a task every `mean` s from `begin` on, all of them `most`."""

    begin: float
    end: float
    slots: float
    most: float


class Progress:
    """The tasks that members finish by one belief."""

    def __init__(self, belief: Belief, tasks: int, pad: float, pace: float) -> None:
        """Of so many `tasks`, those that run included, in requests of which `pad` seconds are without tasks.

        `pace`: the speed of requests made later, in parts of that of the same requests made now.
        """
        self.weight, self.tasks = belief.weight, float(tasks)
        self._mean, self._alike, self._longest = belief.mean, belief.alike, belief.longest
        self._pad, self._pace = pad, pace
        self._later: list[tuple[float, float]] = []
        """By step of the coarse grid: tasks that follow within t seconds, as `a + b * t`."""
        self.curves = _Known(self._curve)
        """By member."""

    def _curve(self, member: Member) -> Curve:
        """Where all tasks are alike they end together; else a slot finishes one every `mean` seconds, and
        starts others until no more than that is left (`learning.RuntimeLearner.even`)."""
        start, length, slots, age = member
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
        """Make the table of what follows a request when it ends: the most tasks that one of these offers
        after the other finishes up to each time of the coarse grid, if the holes of now come again."""
        curves = sorted(curve for offer in offers if (curve := self.curves[offer]).most > 0)
        mean, alike, pace, later = self._mean, self._alike, self._pace, self._later
        best, since = 0.0, 0.0
        for at in _COARSE:
            more = best
            for begin, end, slots, most in curves:  # as `done`, of one curve: there are many
                if begin >= at:
                    break
                if at >= end:
                    done, seconds = most, pace * (at - end)
                    if seconds >= _COARSE[0] and later:
                        constant, slope = later[bisect_right(_COARSE, seconds, 0, len(later)) - 1]
                        done += constant + slope * seconds
                else:
                    rounds = (at - begin + TINY) / mean
                    done = slots * (rounds // 1 if alike else rounds)
                    if done > most:
                        done = most
                if done > more:
                    more = done
            if later:
                slope = (more - best) / (at - since)
                later[-1] = best - slope * since, slope
            later.append((0.0, more / at))  # beyond the table the speed stays
            best, since = more, at
            if best >= self.tasks:
                return

    def done(self, curves: Sequence[Curve], at: float, pace: float | None = None) -> float:
        """Tasks that members, and the requests made when they end, at this pace, have finished at a time."""
        mean, alike, later, total = self._mean, self._alike, self._later, 0.0
        for begin, end, slots, most in curves:
            if at >= end:
                seconds = (pace or self._pace) * (at - end)
                if seconds >= _COARSE[0] and later:
                    constant, slope = later[bisect_right(_COARSE, seconds, 0, len(later)) - 1]
                    most += constant + slope * seconds
                total += most
            elif at > begin:
                rounds = (at - begin + TINY) / mean
                done = slots * (rounds // 1 if alike else rounds)
                total += most if done > most else done
        return total


class RequestSet:
    """Requests together, and by belief when they complete the bag."""

    def __init__(
        self, by_belief: Sequence[Progress], members: Sequence[Member], steps: list[int] | None = None
    ) -> None:
        """`steps`: the completions, where they are known."""
        self._by_belief, self.members = by_belief, members
        self._curves = [[progress.curves[member] for member in members] for progress in by_belief]
        self._done = [
            _Known[float, float](partial(progress.done, there))
            for progress, there in zip(by_belief, self._curves, strict=True)
        ]
        self.steps = steps or self._completions([done.__getitem__ for done in self._done])
        """By belief: the first step of the grid at which all tasks are done."""
        self.worth = self._mean(self.steps)
        """The expected completion as a step of the grid: its geometric mean, so that no belief outweighs
        the others."""

    @property
    def cost(self) -> float:
        """The expected completion in seconds."""
        return math.exp(self.worth * math.log(FINE))

    @property
    def ends(self) -> list[float]:
        """By belief: seconds until the bag is done."""
        return [INSTANTS[step] for step in self.steps]

    def at_pace(self, pace: float) -> float:
        """The worth of the set if the requests that follow have this speed."""
        pairs = zip(self._by_belief, self._curves, strict=True)
        return self._mean(self._completions([partial(one.done, there, pace=pace) for one, there in pairs]))

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
            curve, mark = progress.curves[member], marks[which]
            before, counts = INSTANTS[mark - 1], any_counts or curve.most > 0
            if (
                counts
                and curve.begin < before
                and self._done[which][before] + progress.done((curve,), before) >= progress.tasks
            ):
                found[which] = self._first(which, curve, 0, mark - 1)
                gain += progress.weight * (mark - found[which])
            elif mark < self.steps[which]:
                others.append((which, curve, counts))
        for which, curve, counts in others:
            if gain <= least:
                return None
            latest = self.steps[which]
            found[which] = self._first(which, curve, marks[which], latest) if counts else latest
            gain -= self._by_belief[which].weight * (found[which] - marks[which])
        return found if gain > least else None

    def _first(self, which: int, curve: Curve, low: int, high: int) -> int:
        """The first step of these at which all tasks are done by one belief with one curve more."""
        progress, there, one = self._by_belief[which], self._done[which], (curve,)
        while low < high:
            step = (low + high) // 2
            at = INSTANTS[step]
            if there[at] + progress.done(one, at) < progress.tasks:
                low = step + 1
            else:
                high = step
        return low

    def _completions(self, done: Sequence[Callable[[float], float]]) -> list[int]:
        pairs = zip(self._by_belief, done, strict=True)
        return [bisect_left(INSTANTS, progress.tasks, 0, NEVER, key=by) for progress, by in pairs]

    def _mean(self, steps: Sequence[int]) -> float:
        return sum(progress.weight * step for progress, step in zip(self._by_belief, steps, strict=True))
