"""Why a site submits no request for a while after failures."""

from __future__ import annotations

import time

from adaptor.decisions.snapshot import SiteFacts


def why_held_off(site: SiteFacts, now: float) -> str:
    """Why no request may be submitted yet; empty: nothing stands in the way."""
    if site.unusable:
        return site.unusable
    if site.refused.waiting(now):
        return f"the last request failed ({site.refused.reason}); next try at {_clock(site.refused.until)}"
    if site.fruitless.waiting(now):
        return (
            f"{site.fruitless.failures} pilots in a row ended without running a task "
            f"({site.fruitless.reason}); next try at {_clock(site.fruitless.until)}"
        )
    return ""


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
