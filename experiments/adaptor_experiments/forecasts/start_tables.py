"""Accuracy of forecasts of starts, and share within their bounds, in the field's measures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from adaptor.model import Estimate
from adaptor.units import counted
from adaptor_experiments.forecasts.replayed import by_others, by_past, mixed_by_past
from adaptor_experiments.forecasts.starts import Start
from adaptor_experiments.tables import Runs

SOON = 600.0  # seconds within which a job starts soon
NEAR = {"1 min": 60.0, "10 min": 600.0, "1 h": 3600.0}
"""Errors up to which forecasts are near (Brown et al. 2022, arXiv 2204.13543: one minute)."""

FACTORS = (2.0, 3.0)
"""Ratios up to which forecasts are near (Mila, slurm-queue-time-pred, 2022)."""
_LEAST = 60.0  # seconds that a wait counts as at least in ratios: what a scheduler may take to look
MEASURES = (
    *(f"within {near}" for near in NEAR),
    *(f"factor {factor:g}" for factor in FACTORS),
    "MSE of log10",
    "soon: AUC",
)

NEAR_HEADINGS = ("trace", "scheduler", "forecast", "n", *MEASURES)


def near_table(rows: Sequence[Start]) -> Iterator[tuple[str, ...]]:
    """Errors of the mixture that users meet, of drawn futures and past waits alone, of the plan and the
    floors."""
    places = {(row.trace, row.scheduler, row.job): place for place, row in enumerate(rows)}
    mixture = mixed_by_past([row.case for row in rows], [row.past for row in rows])
    for (trace, scheduler), some in Runs(rows).by("trace", "scheduler").items():
        waits = [row.wait for row in some]
        ways: dict[str, Sequence[float | None]] = {
            "mixed": [mixture[places[trace, scheduler, row.job]].raw.ends.value for row in some],
            "drawn": [row.value for row in some],
            "like jobs": [None if row.past is None else row.past.like.value for row in some],
            "planned": [row.planned for row in some],
            "past waits": [row.middle for row in some],
            "past waits by shape": [row.shape for row in some],
        }
        ranks = {"drawn": [row.value + 1e-3 * row.high for row in some]}
        for name, told in ways.items():
            yield (
                *(trace, scheduler, name, str(len(some))),
                *measures(told, waits, ranks.get(name)),
            )


def measures(
    told: Sequence[float | None], waits: Sequence[float], ranks: Sequence[float] | None = None
) -> tuple[str, ...]:
    """A line of `MEASURES`; what is not forecast is near nothing, and left out of the mean square.

    Args:
        told: the waits that were forecast; None: none was.
        ranks: an order of the jobs by their starts, if there is a finer one than `told`.
    """
    values, real = np.array([math.nan if each is None else each for each in told]), np.array(waits)
    errors = np.abs(values - real)
    logs = np.log10(np.maximum(values, _LEAST)) - np.log10(np.maximum(real, _LEAST))
    known = np.isfinite(logs)
    square = f"{np.mean(logs[known] ** 2):.2f}" if known.any() else ""
    soon = auc(values.tolist() if ranks is None else ranks, (real <= SOON).tolist())
    return (
        *(f"{np.mean(errors <= near):.0%}" for near in NEAR.values()),
        *(f"{np.mean(np.abs(logs) <= math.log10(factor)):.1%}" for factor in FACTORS),
        *(square, "" if math.isnan(soon) else f"{soon:.3f}"),
    )


def remarks(rows: Sequence[Start], notes: Mapping[tuple[str, str], Sequence[str]]) -> Iterator[str]:
    """Facts that the traces do not show, a line each.

    Args:
        notes: by trace and scheduler.
    """
    for (trace, scheduler), some in Runs(rows).by("trace", "scheduler").items():
        for note in notes.get((trace, scheduler), ()):
            yield f"{trace}, {scheduler}: {note}"
        late = sum(row.wait > row.planned + _LEAST for row in some)
        if scheduler == "recorded" and late:
            yield (
                f"{trace}, {scheduler}: {late} of {counted(len(some), 'job')} started later than if all had"
                " run to their limits in the order of submission: priorities, holds, dependencies or limits"
                " that the trace does not show"
            )


COVER_HEADINGS = ("trace", "scheduler", "interval", "held", "median width", "upper held", "median upper")


def cover_table(rows: Sequence[Start]) -> Iterator[tuple[str, ...]]:
    """Share of starts in their 90 % intervals, and below the upper ends, with the binomial bound."""
    cases = [row.case for row in rows]
    mixture = mixed_by_past(cases, [row.past for row in rows])
    ways = {
        "drawn": [case.raw.ends for case in cases],
        "by other traces": by_others(cases),
        "by the site's past": by_past(cases),
        "mixed, by its past": by_past(mixture),
    }
    places = {(row.trace, row.scheduler, row.job): place for place, row in enumerate(rows)}
    for (trace, scheduler), some in Runs(rows).by("trace", "scheduler").items():
        mine = [places[row.trace, row.scheduler, row.job] for row in some]
        waits = [row.wait for row in some]
        for name, ends in ways.items():
            yield trace, scheduler, name, *covers([ends[place] for place in mine], waits)
        bounded = [(row.wait, row.bound) for row in some if row.bound is not None]
        if bounded:
            below = [wait <= bound for wait, bound in bounded]
            upper = _hours([bound for _, bound in bounded])
            yield trace, scheduler, "binomial bound", "", "", f"{np.mean(below):.1%}", upper


def covers(ends: Sequence[Estimate], waits: Sequence[float]) -> tuple[str, ...]:
    """Share of waits in intervals, the width, the share below the upper ends, and these."""
    # Recorded times are whole seconds.
    held = [end.low - 1 <= wait <= end.high + 1 for end, wait in zip(ends, waits, strict=True)]
    below = [wait <= end.high + 1 for end, wait in zip(ends, waits, strict=True)]
    return (
        *(f"{np.mean(held):.1%}", _hours([end.high - end.low for end in ends])),
        *(f"{np.mean(below):.1%}", _hours([end.high for end in ends])),
    )


def auc(ranked: Sequence[float], positive: Sequence[bool]) -> float:
    """The chance that a job that starts soon is ranked before one that does not; NaN: all or none do.

    The area under the ROC curve as the Mann-Whitney statistic; what is not ranked comes last.
    """
    those = np.array(positive)
    n, others = int(those.sum()), int((~those).sum())
    if not n or not others:
        return math.nan
    from scipy.stats import rankdata  # takes seconds to import

    ranks = rankdata(np.nan_to_num(np.array(ranked), nan=math.inf, posinf=math.inf))
    return float(1 - (ranks[those].sum() - n * (n + 1) / 2) / (n * others))


def _hours(seconds: Sequence[float]) -> str:
    return f"{np.median(seconds) / 3600:.1f} h"
