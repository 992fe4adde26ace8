"""Why a site submits no request for a while after failures."""

from __future__ import annotations

from adaptor.decisions.snapshot import SiteFacts
from adaptor.units import format_clock


def why_held_off(site: SiteFacts, now: float) -> str:
    """Why no request may be submitted yet; empty: nothing stands in the way."""
    if site.unusable:
        return site.unusable
    if site.refused.waiting(now):
        return (
            f"the last request failed ({site.refused.reason}); next try at {format_clock(site.refused.until)}"
        )
    if site.fruitless.waiting(now):
        return (
            f"{site.fruitless.failures} pilots in a row ended without running a task "
            f"({site.fruitless.reason}); next try at {format_clock(site.fruitless.until)}"
        )
    return ""
