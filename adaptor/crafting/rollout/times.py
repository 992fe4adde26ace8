"""The times by which the rollout heuristic goes, in proportion to the requests of a site. Pure."""

from __future__ import annotations

import msgspec

USUAL = 64_800.0
"""Seconds, the max_tr of De Rose et al. (2008, §4.4), with which these times were found."""
_FIRST, _SETTLED = 60.0, 300.0
_LEAST_SETTLED = 30.0
"""Slurm's default bf_interval: before that a request may have no planned start."""


class Times(msgspec.Struct, frozen=True):
    """In seconds."""

    first: float
    """The shortest runtime that is thought of before anything is known."""
    settled: float
    """In the queue, or of running, before which no request makes room for a better one: local jobs take the
    place of what was queued, and what runs has not shown what it brings."""


def times_for(max_tr: float) -> Times:
    """Shorter where requests are: the queue of a site that allows an hour moves in minutes.

    Args:
        max_tr: of the site, seconds.
    """
    share = min(1.0, max_tr / USUAL)
    return Times(first=share * _FIRST, settled=max(_LEAST_SETTLED, share * _SETTLED))
