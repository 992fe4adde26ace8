"""Starts that were forecast at a site, and waits of its jobs, as they are kept."""

from __future__ import annotations

import msgspec

from adaptor.forecast.calibration import Kind
from adaptor.forecast.past_waits import PastWait, Weights
from adaptor.model import Estimate


class JudgedStart(msgspec.Struct, frozen=True):
    held: bool
    """Whether the start lies in its interval."""
    error: float
    """Seconds between it and the expected start."""
    kind: Kind
    score: float
    ratios: Weights | None = None
    """`past_waits.ratio` of each of the three forecasts alone; None: too few waits were known."""
    told: Estimate | None = None
    """Seconds from the forecast to the start, as forecast; None: an earlier version judged it."""
    came: float | None = None
    """Seconds from the forecast to the start."""


class KeptStarts(msgspec.Struct, frozen=True):
    """Judged starts and waits in the form that is stored, the oldest first."""

    judged: tuple[JudgedStart, ...] = ()
    waits: tuple[PastWait, ...] = ()
