"""What the slides find of the tail phase ("Tail Phase Findings"), held against every kind of bag and budget.

The slides give no bounds for "fine", "worth" or "bad". Those here are ours and stand beside each finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import msgspec
import numpy as np

from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.bats.campaign import Run
from adaptor_experiments.bats.design import BUDGETS, KINDS, Way
from adaptor_experiments.bats.tables import of
from adaptor_experiments.bootstrap import Interval, Matrix, interval, weights

Verdict = Literal["holds", "open", "does not hold"]
_OTHERS: tuple[Way, ...] = ("random", "stochastic", "perfect", "migration")
"""The slides' ways other than doing nothing."""
_SEED = 1


class Cell:
    """The runs of one kind of bag with one budget. Intervals are those of drawing its bags again."""

    def __init__(self, runs: Sequence[Run], kind: str, budget: str) -> None:
        self._runs, self._kind, self._budget = runs, kind, budget

    def sooner(self, way: Way, other: Way) -> Interval:
        """Time of a way less that of another, in points of the time without a tail phase."""
        return _interval(np.subtract, self._means(way, _relative), self._means(other, _relative))

    def worst(self) -> Interval:
        """Of the ways that do something, that which takes longest, less doing nothing."""
        latest = max(_OTHERS, key=lambda way: float(self._means(way, _relative).mean()))
        return self.sooner(latest, "none")

    def spread(self, way: Way, other: Way) -> Interval:
        """Standard deviation of the times of a way less that of another, in the same points."""
        squares = [self._means(each, lambda run: run.relative**2) for each in (way, other)]
        means = [self._means(each, _relative) for each in (way, other)]
        return _interval(_deviations, *means, *squares)

    def in_vain(self, way: Way, other: Way) -> Interval:
        """Share of replicas that did not end first: of a way less that of another, in points."""
        started = [self._means(each, lambda run: run.replicas) for each in (way, other)]
        won = [self._means(each, lambda run: run.won) for each in (way, other)]
        return _interval(_losses, *started, *won)

    def _means(self, way: Way, value: Callable[[Run], float]) -> Matrix:
        """By bag."""
        by_bag: dict[int, list[float]] = {}
        for run in of(self._runs, self._kind, self._budget, way):
            by_bag.setdefault(run.bag, []).append(value(run))
        return np.array([np.mean(each) for each in by_bag.values()])


def _relative(run: Run) -> float:
    return run.relative


def _deviations(mean: Matrix, other: Matrix, square: Matrix, other_square: Matrix) -> Matrix:
    deviation, other_deviation = (
        np.sqrt(np.maximum(0.0, squares - means**2))
        for means, squares in ((mean, square), (other, other_square))
    )
    return np.asarray(deviation - other_deviation)


def _losses(started: Matrix, other_started: Matrix, won: Matrix, other_won: Matrix) -> Matrix:
    return np.asarray(100 * (_lost(started, won) - _lost(other_started, other_won)))


def _lost(started: Matrix, won: Matrix) -> Matrix:
    """Share; none where nothing was started."""
    return np.where(started > 0, 1 - won / np.maximum(started, 1e-9), 0.0)


def _interval(combine: Callable[..., Matrix], *by_bag: Matrix) -> Interval:
    """Of what `combine` makes of the means over all bags."""
    samples = len(by_bag[0])
    drawn = weights(samples, _SEED)
    value = combine(*(each.mean() for each in by_bag))
    return interval(float(value), combine(*(each @ drawn for each in by_bag)), samples)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of the slides, and a figure that is below a bound where it holds."""

    sentence: str
    figure: str
    """What is measured, in words."""
    measure: Callable[[Cell], Interval]
    bound: float = 0.0

    def judge(self, cell: Cell) -> Verdict:
        return self.verdict(self.measure(cell))

    def verdict(self, found: Interval) -> Verdict:
        """By what was measured."""
        if not found.known or found.low < self.bound <= found.high:
            return "open"
        return "holds" if found.value < self.bound else "does not hold"


FINDINGS = (
    Finding(
        sentence="Doing “nothing” is the only bad option",
        figure="the slowest other way less nothing: below 0",
        measure=Cell.worst,
    ),
    Finding(
        sentence="Replication works fine",
        figure="stochastic less nothing: below 0",
        measure=lambda cell: cell.sooner("stochastic", "none"),
    ),
    Finding(
        sentence="Even with random selection",
        figure="random less nothing: below 0",
        measure=lambda cell: cell.sooner("random", "none"),
    ),
    Finding(
        sentence="[random selection] has higher error rate: if replicas in vain are meant",
        figure="share of replicas that do not end first, stochastic less random: below 0",
        measure=lambda cell: cell.in_vain("stochastic", "random"),
    ),
    Finding(
        sentence="[random selection] has higher error rate: if the bars of the figures are meant",
        figure="standard deviation of the time, stochastic less random: below 0",
        measure=lambda cell: cell.spread("stochastic", "random"),
    ),
    Finding(
        sentence="Additional migration seems not to be worth the effort",
        figure="what it gains, stochastic less stochastic + migration: below 1",
        measure=lambda cell: cell.sooner("stochastic", "migration"),
        bound=1.0,
    ),
    Finding(
        sentence="The price we pay (kill running task) seems to outweigh the benefits",
        figure="a migration that loses nothing less stochastic: below 0, so that there are benefits",
        measure=lambda cell: cell.sooner("nothing lost", "stochastic"),
    ),
)
_REMARKS = (
    "Points are per cent of the time without a tail phase, or per cent of the replicas, with 95 % intervals"
    " from drawing the bags again. A finding holds where the interval is below the bound, does not hold where"
    " it is above, and is open where the bound lies within.",
    "The last row is a way that no machine has: a task that is moved goes on where it was.",
)


def findings(runs: Sequence[Run]) -> Exhibit:
    """Each finding of the slides in each kind of bag with each budget."""
    return Exhibit(
        name="findings",
        title="What the slides find, and what is found here",
        headings=(
            "the slides",
            "measured, in points",
            *(f"{kind}, {budget}" for kind in KINDS for budget in BUDGETS),
            "verdict",
        ),
        rows=[_row(each, _cells(runs)) for each in FINDINGS],
        remarks=_REMARKS,
    )


def verdicts(runs: Sequence[Run]) -> tuple[str, ...]:
    """In sentences: where each finding holds."""
    return tuple(f"“{each.sentence}”: {_tally(list(map(each.judge, _cells(runs))))}." for each in FINDINGS)


def _cells(runs: Sequence[Run]) -> list[Cell]:
    return [Cell(runs, kind, budget) for kind in KINDS for budget in BUDGETS]


def _row(finding: Finding, cells: Sequence[Cell]) -> list[str]:
    measured = [finding.measure(cell) for cell in cells]
    return [
        finding.sentence,
        finding.figure,
        *map(str, measured),
        _tally([finding.verdict(each) for each in measured]),
    ]


def _tally(found: Sequence[Verdict]) -> str:
    parts = [f"{each} in {found.count(each)}" for each in get_args(Verdict) if each in found]
    return f"{', '.join(parts)} of {len(found)}"
