"""What the slides find of the tail phase ("Tail Phase Findings"), held against every kind of bag and budget.

The slides give no bounds for "fine", "worth" or "bad". Those here are ours and stand next to each finding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adaptor_experiments.bats.campaign import Run
from adaptor_experiments.bats.design import CASES, Way
from adaptor_experiments.bootstrap import Drawn, Interval, Matrix, drawn_means, weights
from adaptor_experiments.claims import Verdict, less, tally
from adaptor_experiments.figures.exhibits import Exhibit
from adaptor_experiments.tables import Figure, Runs, texts

_WORDS: dict[Verdict, str] = {"confirms": "holds", "open": "open", "contradicts": "does not hold"}
_OTHERS: tuple[Way, ...] = ("random", "stochastic", "perfect", "migration")
"""The slides' ways other than doing nothing."""
_SEED = 1


class Cell:
    """The runs of one kind of bag with one budget. Intervals are those of drawing its bags again."""

    def __init__(self, runs: Runs[Run], kind: str, budget: str) -> None:
        self._by_way = runs.where(kind=kind, budget=budget, replanning="daemon").by("way")

    def sooner(self, way: Way, other: Way) -> Interval:
        """Time of a way less that of another, in points of the time without a tail phase."""
        return (self._mean(way, "relative") - self._mean(other, "relative")).interval

    def worst(self) -> Interval:
        """Of the ways that do something, that which takes longest, less doing nothing."""
        latest = max(_OTHERS, key=lambda way: float(self._mean(way, "relative").value))
        return self.sooner(latest, "none")

    def spread(self, way: Way, other: Way) -> Interval:
        """Standard deviation of the times of a way less that of another, in the same points."""
        deviations = [
            self._mean(name, lambda run: run.relative**2).through(_deviation, self._mean(name, "relative"))
            for name in (way, other)
        ]
        return (deviations[0] - deviations[1]).interval

    def in_vain(self, way: Way, other: Way) -> Interval:
        """Share of replicas that did not end first: of a way less that of another, in points."""
        lost = [self._mean(name, "replicas").through(_lost, self._mean(name, "won")) for name in (way, other)]
        return (lost[0] - lost[1]).through(lambda share: 100 * share).interval

    def _mean(self, way: Way, figure: Figure) -> Drawn:
        by_bag = np.array([runs.mean(figure) for runs in self._by_way[way].by("bag").values()])
        return drawn_means(by_bag, weights(len(by_bag), _SEED))


def _deviation(squares: Matrix, means: Matrix) -> Matrix:
    return np.asarray(np.sqrt(np.maximum(0.0, squares - means**2)))


def _lost(started: Matrix, won: Matrix) -> Matrix:
    """Share; none where nothing was started."""
    return np.where(started > 0, 1 - won / np.maximum(started, 1e-9), 0.0)


FINDINGS: tuple[tuple[Callable[[Cell], Interval], float], ...] = (
    (Cell.worst, 0.0),
    (lambda cell: cell.sooner("stochastic", "none"), 0.0),
    (lambda cell: cell.sooner("random", "none"), 0.0),
    (lambda cell: cell.in_vain("stochastic", "random"), 0.0),
    (lambda cell: cell.spread("stochastic", "random"), 0.0),
    (lambda cell: cell.sooner("stochastic", "migration"), 1.0),
    (lambda cell: cell.sooner("nothing lost", "stochastic"), 0.0),
)
"""What is measured for each sentence of the page's table, and the bound below which the sentence holds."""


def findings(runs: Runs[Run]) -> Exhibit:
    """Each finding of the slides in each kind of bag with each budget."""
    page = texts("bats")
    cells = [Cell(runs, *case) for case in CASES]
    rows = []
    for (measure, bound), texts_of_row in zip(FINDINGS, page.tables["findings"].rows, strict=True):
        measured = [measure(cell) for cell in cells]
        found = tally(measured, lambda figure, bound=bound: less(figure, bound))  # type: ignore[misc]
        told = [f"{word} in {len(found[verdict])}" for verdict, word in _WORDS.items() if found[verdict]]
        rows.append([*texts_of_row, *map(str, measured), f"{', '.join(told)} of {len(measured)}"])
    return page.exhibit("findings", rows, (*map(", ".join, CASES), "verdict"))
