"""A number of the papers beside ours."""

from __future__ import annotations

import msgspec

from adaptor_experiments.a2ha import reasons
from adaptor_experiments.a2ha.reasons import Reason
from adaptor_experiments.a2ha.summary import Mean

NEAR = 0.05
"""A mean agrees that is so near to the paper's, or that rounds to it."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One number."""

    place: str
    what: str
    paper: str
    ours: str
    reason: Reason

    @property
    def cells(self) -> list[str]:
        return [self.place, self.what, self.paper, self.ours, self.reason.short]


def measured(place: str, what: str, printed: float, ours: Mean, reason: Reason) -> Line:
    return Line(
        place=place,
        what=what,
        paper=f"{printed:g}",
        ours=ours.shown(),
        reason=reasons.AGREES if is_near(ours, printed) else reason,
    )


def is_near(ours: Mean, printed: float) -> bool:
    return abs(ours.value - printed) <= NEAR * printed or round(ours.value) == printed


def said(place: str, what: str, printed: str, ours: str, reason: Reason = reasons.AGREES) -> Line:
    return Line(place=place, what=what, paper=printed, ours=ours, reason=reason)
