"""What a variant loses against the tree as it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from lab.ablation.measures import FORECASTS, Row


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """By a measure; shares, of which 0 is no difference, and below 0 the variant is better."""

    goal: float
    """Of what the wish leaves open: geometric mean over the bags that both complete; of forecasts, by the
    mean score. Infinite: the variant fails."""
    both: float
    """Time × cost, geometric mean; NaN: of forecasts."""
    kept: int
    """Bags fewer that are done in time, or intervals that held."""
    exceeded: int
    """Bags more that cost more than their budget."""
    differing: int
    """Rows that differ."""

    @property
    def worst(self) -> float:
        """A bag that is not done in time counts as 2 %."""
        return max(self.goal, 0.02 * self.kept)


def loss(base: Sequence[Row], other: Sequence[Row]) -> Loss:
    if not other:
        return Loss(goal=math.inf, both=math.nan, kept=0, exceeded=0, differing=len(base))
    before, after = ({row.cell: row for row in rows} for rows in (base, other))
    pairs = [(before[cell], after[cell]) for cell in before if cell in after]
    forecasts = base[0].measure in FORECASTS
    if forecasts:
        goal = sum(new.goal for _, new in pairs) / sum(old.goal for old, _ in pairs) - 1
        both = math.nan
    else:
        done = [pair for pair in pairs if all(row.kept for row in pair)]
        goal = _mean(new.goal / old.goal for old, new in done)
        costs = (new.cost / old.cost if old.cost else 1.0 for old, new in done)
        both = _mean(new.time / old.time * cost for (old, new), cost in zip(done, costs, strict=True))
    return Loss(
        goal=goal,
        both=both,
        kept=sum(old.kept - new.kept for old, new in pairs),
        exceeded=sum(new.exceeded - old.exceeded for old, new in pairs),
        differing=sum(_figures(old) != _figures(new) for old, new in pairs),
    )


def _figures(row: Row) -> tuple[object, ...]:
    return row.goal, row.kept, row.time, row.cost


def _mean(ratios: Iterable[float]) -> float:
    """Geometric mean, less 1."""
    logs = [math.log(max(1e-9, ratio)) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) - 1 if logs else 0.0
