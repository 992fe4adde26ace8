"""The limits of a site whose scheduler did not answer when the daemon started: it is asked again.

Meanwhile no request is made there, no task counts as too large for it, and the other sites go on.
"""

from __future__ import annotations

from adaptor.config.schema import SiteConfig
from adaptor.model import Limits

_UNBOUNDED = 10**9


def unknown_limits(config: SiteConfig) -> Limits:
    """Stand for limits that could not be asked yet."""
    given = config.limits
    return Limits(
        max_pending_requests=0,
        max_proc=given.max_proc or _UNBOUNDED,
        max_tr=int(given.max_tr or _UNBOUNDED),
    )
