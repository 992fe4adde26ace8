"""Intervals that hold as often as they say, by split-conformal prediction. Pure.

A simulation leaves much out: jobs that come later, tasks of which nothing is seen yet. How far off that puts
forecasts is measured: the score of a past one says where between its raw ends, or how far beyond, the truth
came. Quantiles of the scores of past forecasts of the same kind make the next interval (Vovk, Gammerman and
Shafer 2005; one quantile for each side: Romano, Patterson and Candès 2019; a scale for each forecast, its own
raw width: Papadopoulos, Gammerman and Vovk 2008). It holds in 90 % of the cases if the next forecast errs as
the past ones did.

This is the one place where intervals of times are made wider or narrower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from adaptor.forecast.measured_scores import MEASURED
from adaptor.model import Estimate

Kind = Literal[
    "now",
    "start",
    "first",
    "early",
    "late",
    "alone first",
    "alone early",
    "alone late",
    "paid early",
    "paid late",
]
"""Forecasts that err alike: of starts, at once in all futures or later; of ends of bags by the tasks that
finished (none, up to a quarter, more), with jobs of others in the queue or alone; alone, bags that pay."""
EARLY = 0.25  # the share of finished tasks up to which a forecast is an early one
ENOUGH = 19  # own scores from which on an interval is the site's own: the fewest whose 0.95 quantile exists
NEWEST = 400  # own scores that count, the newest: queues change
LOOKS = 5.0  # looks of a scheduler at its queue that are the unit of starts
_WIDTH = {"early": 3.0, "alone early": 3.0, "alone late": 0.1}
"""Added to each side of a raw interval, on its scale; 1 for the other kinds. Futures that all agree may err.
Early raw intervals tell little of which bags are hard to foresee, because long tasks have not finished. If
only the rest of the tasks is unknown, they tell it well. Of 0.1, 0.3, 1 and 3, these gave the narrowest
intervals on traces."""
_SHARES = (0.025, 0.925)
"""Shares of the scores below the low and the high end. Late ends may be very late: with more of the misses
above, the interval that holds 90 % is narrower, by a quarter on traces."""
_LONGEST = 1e9  # seconds beyond which no raw interval reaches


class Raw(msgspec.Struct, frozen=True, kw_only=True):
    """A forecast as it was simulated. Epoch seconds."""

    kind: Kind
    made: float
    unit: float
    """Seconds that are nearly nothing: the scale is linear below, logarithmic above."""
    ends: Estimate


def kind_of_start(ends: Estimate, made: float) -> Kind:
    """The kind of the forecast of a start."""
    return "now" if ends.high <= made else "start"


def kind_of_end(finished: int, tasks: int, *, alone: bool, pays: bool = False) -> Kind:
    """The kind of the forecast of a bag's end.

    Args:
        alone: whether no jobs of others are in the queue.
        pays: whether it has pilots of its own.
    """
    if not finished:
        return "alone first" if alone else "first"
    if finished <= EARLY * tasks:
        return ("paid early" if pays else "alone early") if alone else "early"
    return ("paid late" if pays else "alone late") if alone else "late"


def score(raw: Raw, came: float) -> float:
    """Place of the truth on the scale of a forecast: 0 at the forecast, -1 and 1 about at the raw ends."""
    middle, truth = _scaled(raw, raw.ends.value), _scaled(raw, came)
    return (truth - middle) / _side(raw, truth - middle)


def calibrated(raw: Raw, own: Sequence[float] = (), measured: Sequence[float] | None = None) -> Estimate:
    """The forecast, with 90 % of the scores between its low and its high end.

    Args:
        own: scores of past forecasts of this kind at the site, the oldest first.
        measured: scores at other sites, which are added to them, and count less the more there are; None:
            those of `measured_scores`.
    """
    scores = sorted([*own[-NEWEST:], *(MEASURED[raw.kind] if measured is None else measured)])
    low, high = (_at(raw, _quantile(scores, share)) for share in _SHARES)
    value = raw.ends.value
    return Estimate(min(low, value), value, math.inf if math.isinf(raw.ends.high) else max(high, value))


def _quantile(scores: Sequence[float], share: float) -> float:
    """Quantile with the finite-sample correction: each of n scores and the next one is as likely the k-th of
    n + 1."""
    place = share * (len(scores) + 1)
    if share < 0.5:
        whole = math.floor(place + 1e-9)
        return scores[whole - 1] if whole else -math.inf
    return scores[min(len(scores), math.ceil(place - 1e-9)) - 1]


def _at(raw: Raw, quantile: float) -> float:
    """Epoch seconds of a score."""
    seen = _scaled(raw, raw.ends.value) + quantile * _side(raw, quantile)
    return raw.made + raw.unit * math.expm1(min(max(0.0, seen), math.log1p(_LONGEST / raw.unit)))


def _side(raw: Raw, direction: float) -> float:
    """The scale above or below the value."""
    end = raw.ends.high if direction > 0 else raw.ends.low
    return abs(_scaled(raw, end) - _scaled(raw, raw.ends.value)) + _WIDTH.get(raw.kind, 1.0)


def _scaled(raw: Raw, at: float) -> float:
    return math.log1p(min(_LONGEST, max(0.0, at - raw.made)) / raw.unit)
