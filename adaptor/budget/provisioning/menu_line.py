"""A choice of the user (`menu`): how much a bag may cost, and what it gets for that."""

from __future__ import annotations

import msgspec

from adaptor.model import Estimate


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the menu; the intervals come from the spread of the tasks and the size of the sample."""

    name: str
    budget: float
    """Credits that this choice allows."""
    processors: dict[str, int]
    """Most processors that are held at a time, by site."""
    seconds: Estimate
    """T_e of the slides, with the start-up of pilots and the end of the last tasks."""
    cost: Estimate
    """B_e of the slides, in credits; each site charges its own units."""
    reserved: float = 0.0
    """Credits that its requests reserve beyond the cost, with one for a long last task; most come back."""
