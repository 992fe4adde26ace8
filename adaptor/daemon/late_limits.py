"""The limits of a site whose scheduler did not answer when the daemon started: it is asked again.

Meanwhile no request is made there, no task counts as too large for it, and the other sites go on.
"""

from __future__ import annotations

from adaptor.config.schema import SiteConfig
from adaptor.daemon.site import Site
from adaptor.daemon.sites import limits_of
from adaptor.model import Limits
from adaptor.units import format_duration

_UNBOUNDED = 10**9


def unknown_limits(config: SiteConfig) -> Limits:
    """Stand for limits that could not be asked yet."""
    given = config.limits
    return Limits(
        max_pending_requests=0,
        max_proc=given.max_proc or _UNBOUNDED,
        max_tr=int(given.max_tr or _UNBOUNDED),
    )


async def learn_limits(site: Site) -> None:
    """Ask for them, where they are not known yet. Raises JournalError."""
    if site.memory.limits_known:
        return
    limits = await site.ask(lambda: limits_of(site.config, site.backend))
    if limits is None:
        return
    site.memory.limits, site.memory.limits_known = limits, True
    site.memory.set_longest(site.core.broker)
    site.explain(
        "state",
        f"its limits are known now: {limits.max_pending_requests} requests of {limits.max_proc} processors "
        f"for {format_duration(limits.max_tr)}",
    )
