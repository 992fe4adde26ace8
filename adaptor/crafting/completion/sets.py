"""Sets of requests, and when they complete the bag. Pure; seconds from now on."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from adaptor.crafting.completion.progress import FINE, INSTANTS, NEVER, Curve, Member, Progress


class Outcomes:
    """When requests complete the bag by each belief, and what that is worth."""

    def __init__(self, by_belief: Sequence[Progress], tasks: int) -> None:
        weight = sum(progress.belief.weight for progress in by_belief)
        self.by_belief = [(progress, progress.belief.weight / weight) for progress in by_belief]
        self.tasks = tasks


class RequestSet:
    """Requests together. Completions are places in the grid `INSTANTS`, so sums of places are products of times."""

    def __init__(self, outcomes: Outcomes, members: Sequence[Member]) -> None:
        self._outcomes = outcomes
        self.members = list(members)
        self._curves = [[progress.curve(member) for member in members] for progress, _ in outcomes.by_belief]
        self._known: list[dict[int, float]] = [{} for _ in outcomes.by_belief]
        self._places = self._completions()
        self.worth = self._mean(self._places)
        """The expected completion as a place in the grid: its geometric mean, so that no belief outweighs
        the others."""

    @property
    def cost(self) -> float:
        """The expected completion in seconds."""
        return seconds_at(self.worth)

    @property
    def ends(self) -> list[float]:
        """By belief: seconds until the bag is done."""
        return [INSTANTS[place] for place in self._places]

    def at_pace(self, pace: float) -> float:
        """What the set is worth if the requests that follow have this speed."""
        return self._mean(self._completions(pace))

    def worth_with(self, member: Member, least: float) -> float:
        """What the set is worth with one more; `math.inf` if that is not less than `least`."""
        total = 0.0
        tasks, members = self._outcomes.tasks, range(len(self._places))
        for which in members:
            progress, weight = self._outcomes.by_belief[which]
            curve, high = progress.curve(member), self._places[which]
            if INSTANTS[high] > curve.begin and curve.most > 0:
                low = bisect_left(INSTANTS, curve.begin) if curve.begin > 0 else 0
                known, curves = self._known[which], self._curves[which]
                while low < high:
                    middle = (low + high) // 2
                    at = INSTANTS[middle]
                    there = known.get(middle)
                    if there is None:
                        there = known[middle] = sum(progress.done(other, at) for other in curves)
                    if there + progress.done(curve, at) >= tasks:
                        high = middle
                    else:
                        low = middle + 1
            total += weight * high
            if total >= least:
                return math.inf
        return total

    def joined(self, member: Member) -> RequestSet:
        """The set with one more."""
        return RequestSet(self._outcomes, [*self.members, member])

    def _completions(self, pace: float | None = None) -> list[int]:
        """By belief: the place of the first instant at which all tasks are done."""
        return [
            self._completion(progress, curves, pace)
            for (progress, _), curves in zip(self._outcomes.by_belief, self._curves, strict=True)
        ]

    def _completion(self, progress: Progress, curves: Sequence[Curve], pace: float | None) -> int:
        low, high = 0, NEVER
        while low < high:
            middle = (low + high) // 2
            at = INSTANTS[middle]
            if sum(progress.done(curve, at, pace) for curve in curves) >= self._outcomes.tasks:
                high = middle
            else:
                low = middle + 1
        return high

    def _mean(self, places: Sequence[int]) -> float:
        weighted = zip(self._outcomes.by_belief, places, strict=True)
        return sum(weight * place for (_, weight), place in weighted)


def seconds_at(place: float) -> float:
    """The time at a place in the grid; between two instants too."""
    return FINE**place


def places_for(factor: float) -> float:
    """By how many places a completion moves that comes sooner by a factor below 1."""
    return -math.log(factor) / math.log(FINE)
