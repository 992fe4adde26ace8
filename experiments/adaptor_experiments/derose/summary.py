"""From results to the speedups of the paper, with what chance leaves open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec
import numpy as np

from adaptor_experiments.bootstrap import Interval, Matrix, interval, weights
from adaptor_experiments.derose.design import Workload
from adaptor_experiments.derose.sample import Outcome

Kind = tuple[int, int, int, int]
"""Tasks, mean, heterogeneity, max_pending: one point of the figures."""


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

    workload: Workload
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


def summarise(workload: Workload, outcomes: Sequence[Outcome], seed: int) -> TraceSummary:
    """Speedups of adaptive over static on one trace, whose samples all hold the same cells.

    The waits of static are heavy-tailed, so the intervals are percentiles of a bootstrap. What is drawn
    again are the submission times, for all cells together, as all cells share them.
    """
    kinds, static, adaptive, bound = _matrices(outcomes)
    samples = static.shape[1]
    again = weights(samples, seed)
    speedups = static.mean(axis=1) / adaptive.mean(axis=1)
    drawn = (static @ again) / (adaptive @ again)
    rows = zip(kinds, static.mean(axis=1), adaptive.mean(axis=1), bound.mean(axis=1), strict=True)
    cells = [
        _cell(
            workload.key, kind, samples, (float(s), float(a), float(b)), interval(s / a, by_chance, samples)
        )
        for (kind, s, a, b), by_chance in zip(rows, drawn, strict=True)
    ]
    return TraceSummary(
        workload=workload,
        samples=samples,
        cells=tuple(cells),
        arithmetic=interval(speedups.mean(), drawn.mean(axis=0), samples),
        geometric=interval(_geometric(speedups), np.exp(np.log(drawn).mean(axis=0)), samples),
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
