"""Why a site makes no request after failures, for a while."""

from __future__ import annotations

import time

from adaptor.daemon.site_state import SiteState


def why_held_back(site: SiteState, now: float) -> str:
    """Why no request may be made yet after failures; empty: none stands in the way."""
    if problem := why_of_no_use(site):
        return problem
    if site.refusals.waiting(now):
        return f"the last request failed ({site.refusals.reason}); next try at {_clock(site.refusals.until)}"
    if site.fruitless.waiting(now):
        return (
            f"{site.fruitless.failures} pilots in a row ended without running a task "
            f"({site.fruitless.reason}); next try at {_clock(site.fruitless.until)}"
        )
    return ""


def why_of_no_use(site: SiteState) -> str:
    """Why no pilot could be of any use now; empty: it could."""
    if not site.limits_known:
        return site.problem or "its limits are not known yet"
    if site.remote_folder is not None and site.remote_folder.problem:
        return f"its workers could not reach the daemon: {site.remote_folder.problem}"
    return ""


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
