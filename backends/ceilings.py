"""The three limits of De Rose §4.3 with where they come from, as every batch scheduler sets them."""

from __future__ import annotations

import msgspec

from adaptor.model import Limits

POLITE = 4
"""Requests in the system where nothing else is configured: sites allow far more than is neighbourly."""
LONGEST = 86_400
"""Seconds of a request where there is no limit: schedulers plan no further ahead than a day or so."""


class Bound(msgspec.Struct, frozen=True, order=True):
    """A limit and, for people, where it comes from."""

    value: float
    source: str


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """The tightest of all limits that hold for a site's requests."""

    requests: Bound
    """`math.inf` where the scheduler sets none."""
    processors: Bound
    seconds: Bound


def limits_of(known: Ceilings) -> Limits:
    """Limits that keep within the ceilings, and are polite where there are none."""
    return Limits(
        max_pending_requests=int(min(known.requests.value, POLITE)),
        max_proc=int(known.processors.value),
        max_tr=int(min(known.seconds.value, LONGEST)),
    )
