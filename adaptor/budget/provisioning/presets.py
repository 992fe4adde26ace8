"""Presets of how aggressively to buy hosts before the mean runtime is known well."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from adaptor.budget.errors import BudgetError
from adaptor.model import Preference


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """One flavour of the estimator.

    As in the papers, it buys `creation_ratio` of the hosts that seem necessary, and the ratio comes nearer
    to 1 by `increase_ratio` of the distance with each finished task (A²HA §3.3, Fig. 5, line 16).
    """

    name: str
    creation_ratio: float = 1.0
    """Part of the necessary hosts to buy at the start, from 0 to 1."""
    increase_ratio: float = 1.0
    """Part of the ratio's distance to 1 by which each finished task raises it, from 0 to 1."""
    willing_to_pay: float = 1.0
    """Multiple of the least cost: with 2 each host may be idle for half of its time (2011, §3.1)."""
    beyond_half: Literal["none", "fill"] = "none"
    """Rule for hosts beyond half the number of tasks; `none`: no new ones (2011, §3.6); `fill`: ours, as many
    as fill the half."""
    certainty: float | None = None
    """Confidence of our own estimator, instead of the ratios (`work_bound`); above 0.5 and below 1. None: the
    ratios."""

    def __post_init__(self) -> None:
        """Raises BudgetError: a ratio that cannot be."""
        for name, value in (("creation_ratio", self.creation_ratio), ("increase_ratio", self.increase_ratio)):
            if not 0 <= value <= 1:
                raise BudgetError(f"{name} must be from 0 to 1, not {value:g}")
        if self.willing_to_pay < 1:
            raise BudgetError(f"willing_to_pay must be 1 at least, not {self.willing_to_pay:g}")
        if self.certainty is not None and not 0.5 < self.certainty < 1:
            raise BudgetError(f"certainty must be above 0.5 and below 1, not {self.certainty:g}")

    def part(self, missing: int, ratio: float) -> int:
        """Hosts to buy of those that seem necessary (2011, Fig. 5, line 14)."""
        return math.ceil(missing * ratio)


CONSERVATIVE = Preset(name="conservative", creation_ratio=0.5, increase_ratio=0.5)
AGGRESSIVE = Preset(name="aggressive", creation_ratio=0.75, increase_ratio=0.75)
BALANCED = msgspec.structs.replace(CONSERVATIVE, name="balanced", beyond_half="fill")
FRUGAL = Preset(name="frugal", certainty=0.8, beyond_half="fill")
"""The certainty was set on other bags than those of the experiments (see `adaptor replay a2ha`)."""

PREFERENCES: dict[Preference, Preset] = {"cheap": FRUGAL, "balanced": BALANCED}
"""Preset of each preference of users. A fast bag gets all that is free at once."""


def preset_of(prefer: Preference | None) -> Preset:
    """Preset of a bag with this preference; without one, that of a cheap bag."""
    return PREFERENCES.get(prefer or "cheap", FRUGAL)
