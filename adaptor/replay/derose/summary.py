"""From results to the speedups of the paper, with what chance leaves open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor.replay.derose.sample import Outcome

Matrix = npt.NDArray[np.float64]
Kind = tuple[int, int, int, int]
"""Tasks, mean, heterogeneity, max_pending: one point of the figures."""

REPETITIONS = 2000
"""Of the bootstrap."""


class Interval(msgspec.Struct, frozen=True):
    """A figure with its 95 % confidence interval."""

    value: float
    low: float
    high: float


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of grid job under one limit; means over the samples, in seconds."""

    trace: str
    tasks: int
    mean: int
    heterogeneity: int
    max_pending: int
    samples: int
    static: float
    adaptive: float
    bound: float
    """Of the lower bounds."""
    speedup: Interval
    """static / adaptive, of the means (§4.4)."""


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All cells of a trace."""

    trace: str
    samples: int
    cells: tuple[Cell, ...]
    arithmetic: Interval
    """The mean of the cells' speedups: Table 3."""
    geometric: Interval
    faster: float
    """Share of the cells with a speedup above 1."""
    static_distance: float
    """Geometric mean over the cells of mean turnaround / mean lower bound."""
    adaptive_distance: float


def summarise(trace: str, outcomes: Sequence[Outcome], seed: int) -> TraceSummary:
    """Speedups of one trace, whose samples all hold the same cells.

    The waits of static are heavy-tailed, so the intervals are percentiles of a bootstrap. What is drawn
    again are the submission times, for all cells together, as all cells share them.
    """
    kinds, static, adaptive, bound = _matrices(outcomes)
    samples = static.shape[1]
    draw = np.random.default_rng(seed)
    weights = draw.multinomial(samples, np.full(samples, 1 / samples), REPETITIONS).T / samples
    speedups = static.mean(axis=1) / adaptive.mean(axis=1)
    drawn = (static @ weights) / (adaptive @ weights)
    rows = zip(kinds, static.mean(axis=1), adaptive.mean(axis=1), bound.mean(axis=1), strict=True)
    cells = [
        _cell(trace, kind, samples, (float(s), float(a), float(b)), _interval(s / a, again))
        for (kind, s, a, b), again in zip(rows, drawn, strict=True)
    ]
    return TraceSummary(
        trace=trace,
        samples=samples,
        cells=tuple(cells),
        arithmetic=_interval(speedups.mean(), drawn.mean(axis=0)),
        geometric=_interval(_geometric(speedups), np.exp(np.log(drawn).mean(axis=0))),
        faster=float((speedups > 1).mean()),
        static_distance=_geometric(static.mean(axis=1) / bound.mean(axis=1)),
        adaptive_distance=_geometric(adaptive.mean(axis=1) / bound.mean(axis=1)),
    )


def _cell(trace: str, kind: Kind, samples: int, means: tuple[float, float, float], speedup: Interval) -> Cell:
    tasks, mean, heterogeneity, max_pending = kind
    static, adaptive, bound = means
    return Cell(
        trace=trace,
        tasks=tasks,
        mean=mean,
        heterogeneity=heterogeneity,
        max_pending=max_pending,
        samples=samples,
        static=static,
        adaptive=adaptive,
        bound=bound,
        speedup=speedup,
    )


def _matrices(outcomes: Sequence[Outcome]) -> tuple[list[Kind], Matrix, Matrix, Matrix]:
    """Turnarounds by static and adaptive, and bounds: (cells, samples)."""
    turnarounds: dict[str, dict[Kind, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for each in outcomes:
        kind = (each.tasks, each.mean, each.heterogeneity, each.max_pending)
        turnarounds[each.heuristic][kind][each.sample] = each.turnaround
        turnarounds["bound"][kind][each.sample] = each.bound
    kinds = sorted(turnarounds["bound"])
    samples = sorted({each.sample for each in outcomes})
    static, adaptive, bound = (
        np.array([[turnarounds[name][kind][sample] for sample in samples] for kind in kinds], np.float64)
        for name in ("static", "adaptive", "bound")
    )
    return kinds, static, adaptive, bound


def _geometric(values: Matrix) -> float:
    return float(np.exp(np.log(values).mean()))


def _interval(value: float, drawn: Matrix) -> Interval:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(float(value), float(low), float(high))
