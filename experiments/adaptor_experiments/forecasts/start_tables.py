"""How near starts came to their forecasts, and how often within their bounds, in the field's measures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from adaptor_experiments.forecasts.replayed import by_others, by_past
from adaptor_experiments.forecasts.starts import SOON, Start
from adaptor_experiments.tables import Runs

NEAR = {"1 min": 60.0, "10 min": 600.0, "1 h": 3600.0}
"""Errors up to which forecasts are near (Brown et al. 2022, arXiv 2204.13543: one minute)."""

NEAR_HEADINGS = ("trace", "scheduler", "forecast", "n", *(f"within {near}" for near in NEAR), "soon: AUC")


def near_table(rows: Sequence[Start]) -> Iterator[tuple[str, ...]]:
    """Of drawn futures, of the plan by time limits, and of the median of similar jobs' past waits."""
    for (trace, scheduler), some in Runs(rows).by("trace", "scheduler").items():
        soon = [row.wait <= SOON for row in some]
        ways = {
            "drawn": ([row.value for row in some], [row.value + 1e-3 * row.high for row in some]),
            "planned": ([row.planned for row in some],) * 2,
            "past waits": ([math.nan if row.middle is None else row.middle for row in some],) * 2,
        }
        for name, (told, rank) in ways.items():
            errors = [abs(start - row.wait) for start, row in zip(told, some, strict=True)]
            yield (
                *(trace, scheduler, name, str(len(some))),
                *(f"{np.mean([error <= near for error in errors]):.0%}" for near in NEAR.values()),
                f"{auc(rank, soon):.3f}",
            )


COVER_HEADINGS = ("trace", "scheduler", "interval", "held", "median width", "upper held", "median upper")


def cover_table(rows: Sequence[Start]) -> Iterator[tuple[str, ...]]:
    """How often starts lie in their 90 % intervals, and below the upper ends, with the binomial bound."""
    cases = [row.case for row in rows]
    ways = {
        "drawn": [case.raw.ends for case in cases],
        "by other traces": by_others(cases),
        "by the site's past": by_past(cases),
    }
    places = {(row.trace, row.scheduler, row.job): place for place, row in enumerate(rows)}
    for (trace, scheduler), some in Runs(rows).by("trace", "scheduler").items():
        mine = [places[row.trace, row.scheduler, row.job] for row in some]
        for name, ends in ways.items():
            its = [ends[place] for place in mine]
            # Recorded times are whole seconds.
            held = [end.low - 1 <= row.wait <= end.high + 1 for end, row in zip(its, some, strict=True)]
            below = [row.wait <= end.high + 1 for end, row in zip(its, some, strict=True)]
            yield (
                *(trace, scheduler, name, f"{np.mean(held):.1%}"),
                _hours([end.high - end.low for end in its]),
                *(f"{np.mean(below):.1%}", _hours([end.high for end in its])),
            )
        bounded = [(row.wait, row.bound) for row in some if row.bound is not None]
        if bounded:
            below = [wait <= bound for wait, bound in bounded]
            upper = _hours([bound for _, bound in bounded])
            yield trace, scheduler, "binomial bound", "", "", f"{np.mean(below):.1%}", upper


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
