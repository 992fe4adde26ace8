"""How boldly hosts are bought before the mean runtime is known well."""

from __future__ import annotations

from typing import Literal

import msgspec

from adaptor.budget.errors import BudgetError


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """One flavour of the estimator.

    By the papers: of the hosts that seem necessary, `creation_ratio` are bought, and the ratio comes nearer
    to 1 by `increase_ratio` of the distance with each finished task (A²HA §3.3, Fig. 5, line 16).
    """

    name: str
    creation_ratio: float = 1.0
    """From 0 to 1."""
    increase_ratio: float = 1.0
    """From 0 to 1."""
    rounding: Literal["up", "plus one"] = "up"
    """2011, Fig. 5, line 14: ceil(n·r). 2008, Fig. 3, line 15: int(n·r)+1, even where n is 0."""
    beside_hint: bool = False
    """§3.6 bounds the hosts by half the tasks. Its Table 2 (154 and 179 hosts for 256 tasks) goes beyond
    that by half of the hosts that were hinted at: with this, half of the tasks that those leave counts."""
    certainty: float | None = None
    """Ours, instead of the ratios (see `adaptor.budget.provisioning.work_bound`); above 0.5 and below 1."""

    def __post_init__(self) -> None:
        """Raises BudgetError: a ratio that cannot be."""
        for name, value in (("creation_ratio", self.creation_ratio), ("increase_ratio", self.increase_ratio)):
            if not 0 <= value <= 1:
                raise BudgetError(f"{name} must be from 0 to 1, not {value:g}")
        if self.certainty is not None and not 0.5 < self.certainty < 1:
            raise BudgetError(f"certainty must be above 0.5 and below 1, not {self.certainty:g}")


CONSERVATIVE = Preset(name="conservative", creation_ratio=0.5, increase_ratio=0.5)
AGGRESSIVE = Preset(name="aggressive", creation_ratio=0.75, increase_ratio=0.75)
CONSERVATIVE_2008 = Preset(
    name="conservative-2008", creation_ratio=0.5, increase_ratio=0.5, rounding="plus one"
)
AGGRESSIVE_2008 = Preset(
    name="aggressive-2008", creation_ratio=0.75, increase_ratio=0.75, rounding="plus one"
)
FRUGAL = Preset(name="frugal", certainty=0.8)
"""The certainty was set on other bags than those of the experiments (see `adaptor replay a2ha`)."""

PREFERENCES = {"cheap": FRUGAL, "balanced": CONSERVATIVE, "fast": AGGRESSIVE}
"""What a user prefers, and how boldly hosts are bought for that."""
