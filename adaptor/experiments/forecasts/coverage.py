"""How often the intervals of the forecasts held."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np

from adaptor.experiments.a2ha.bags import KINDS
from adaptor.experiments.bootstrap import Interval
from adaptor.experiments.forecasts.design import BAGS, Row
from adaptor.experiments.proportions import share_interval

LEAST = 0.85
"""The share of the forecasts whose 90 % interval is to hold in each kind of bag."""
_ERROR = 0.05
"""How often chance alone may say that a promise is not kept, all kinds of bags together."""

What = Literal["cost", "end"]
Verdict = Literal["kept", "open", "NOT KEPT"]


class Coverage(msgspec.Struct, frozen=True):
    """Of forecasts of one kind."""

    forecasts: int
    cost: float
    """The share of those whose interval holds the cost."""
    end: float
    """The same of the end."""
    cost_width: float
    """Of the interval, median, as a share of the cost."""
    end_width: float
    """The same of the end, as a share of the time from the submission."""


def coverage(rows: Sequence[Row]) -> Coverage:
    return Coverage(
        forecasts=len(rows),
        cost=float(np.mean([row.cost_holds for row in rows])),
        end=float(np.mean([row.end_holds for row in rows])),
        cost_width=float(np.median([(row.cost_high - row.cost_low) / row.cost for row in rows])),
        end_width=float(np.nanmedian([(row.end_high - row.end_low) / row.end for row in rows])),
    )


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """What users may rely on, and what was found."""

    what: What
    text: str
    together: Coverage
    by_kind: dict[str, Interval]
    """The share that holds in each kind of bag; 5 % is the chance that any interval misses the true one."""

    @property
    def verdict(self) -> Verdict:
        """Not kept only where the interval of a kind excludes the target: few orders say little."""
        if any(share.high < LEAST for share in self.by_kind.values()):
            return "NOT KEPT"
        return "kept" if all(share.value >= LEAST for share in self.by_kind.values()) else "open"

    @property
    def found(self) -> str:
        least = min(self.by_kind, key=lambda key: self.by_kind[key].value)
        share = self.by_kind[least]
        holds, width = (self.together.cost, self.together.cost_width)
        if self.what == "end":
            holds, width = (self.together.end, self.together.end_width)
        return (
            f"{holds:.1%} of all, the least {share.value:.1%} [{share.low:.0%}, {share.high:.0%}]"
            f" ({KINDS[least].title}); median width {width:.0%} of the {self.what}"
        )


_HOLDS: dict[What, Callable[[Row], bool]] = {
    "cost": lambda row: row.cost_holds,
    "end": lambda row: row.end_holds,
}


def promises(rows: Sequence[Row]) -> list[Promise]:
    """That the intervals hold in each kind of bag, over all ways of buying and all moments."""
    together = coverage(rows)
    return [
        Promise(
            what=what,
            text=f"the {what} is in its 90 % interval in {LEAST:.0%} at least of the forecasts for each kind",
            together=together,
            by_kind={
                kind.key: share_interval(_by_order(rows, kind.key, holds), _ERROR / len(BAGS))
                for kind in BAGS
            },
        )
        for what, holds in _HOLDS.items()
    ]


def _by_order(rows: Sequence[Row], bag: str, holds: Callable[[Row], bool]) -> list[list[bool]]:
    """Whether the forecasts held, by order: all of one order are about tasks of the same runtimes."""
    found: dict[int, list[bool]] = defaultdict(list)
    for row in rows:
        if row.bag == bag:
            found[row.order].append(holds(row))
    return list(found.values())
