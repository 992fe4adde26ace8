"""What finished and running tasks of one site teach about the next ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

from adaptor.runtimes.task_time import TaskTime

ENOUGH = 10
"""Tasks that show how far runtimes spread."""
ROUNDS = 6
"""Of expectation and maximisation."""


class Learned:
    """The runtimes seen on one site, as running sums."""

    def __init__(self, prior: TaskTime, weight: int) -> None:
        """`weight`: the number of finished tasks that the prior counts for."""
        self._prior, self._weight = prior, weight
        self.count = 0
        self._sum = 0.0
        self._squares = 0.0

    def add(self, runtime: float) -> None:
        self.count += 1
        self._sum += runtime
        self._squares += runtime * runtime

    def add_together(self, count: int, total: float, squares: float) -> None:
        """As `add` for so many runtimes, from their sum and the sum of their squares."""
        self.count += count
        self._sum += total
        self._squares += squares

    def estimate(self, running: Sequence[float] = ()) -> TaskTime:
        """What is to be expected of the next tasks.

        `running` are the seconds for which present tasks have run. Short tasks finish first, so the
        finished ones alone would look too short; each running one is counted with the runtime to be
        expected of it (expectation-maximisation for censored normal values). A site whose tasks never
        finish so looks worse with every step.
        """
        found = self._with((), self._prior)
        for _ in range(ROUNDS if running else 0):
            found = self._with(running, found)
        return found

    def _with(self, running: Sequence[float], guess: TaskTime) -> TaskTime:
        prior = self._prior
        weight = self._weight if self._weight + self.count + len(running) else 1
        total = weight * prior.mean + self._sum
        squares = weight * (prior.mean**2 + prior.deviation**2) + self._squares
        for elapsed in running:
            excess, variance = guess.above(elapsed)
            total += elapsed + excess
            squares += (elapsed + excess) ** 2 + variance
        number = weight + self.count + len(running)
        mean = total / number
        # Too few to say how far they spread: as the prior, in proportion.
        if number - weight < ENOUGH and weight < ENOUGH:
            return TaskTime(mean, prior.deviation * mean / prior.mean)
        return TaskTime(mean, math.sqrt(max(0.0, squares / number - mean**2)))
