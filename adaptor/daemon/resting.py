"""The interval between looks at a site where nothing happens. Pure; times are seconds."""

from __future__ import annotations

import math

from adaptor.budget.accounting.statements import Statements
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.site_memory import SiteMemory
from adaptor.model import PilotState
from adaptor.scheduling.broker import Broker

SHARE = 8.0
"""Divisor of the time without an event that gives the time to the next look. A free slot that opens meanwhile
is then seen late by an eighth of the wait at most."""
LONGEST = 60.0
"""The longest pause between two looks, where the site itself does not say a longer one."""
TIMES = 4.0  # the longest pause in polls: who asks for frequent looks gets them


def look_after(poll: float, quiet: float) -> float:
    """Seconds from a look to the next periodic one, where no decision depends on the time.

    Args:
        poll: seconds between two looks while something happens.
        quiet: seconds without an event at the site and without an action of a step.
    """
    return max(poll, min(quiet / SHARE, TIMES * poll, LONGEST))


def goes_by_the_clock(site: SiteMemory, broker: Broker, ledger: Statements, now: float) -> bool:
    """Whether a step may decide otherwise only because time has passed, or an answer of the scheduler is
    waited for. `now` is epoch seconds."""
    bags = (bag for bag in broker.state.bags.values() if not bag.ended)
    return bool(
        site.settings.donation is not None
        or not site.limits_known
        or site.problem
        or site.unreachable
        or site.next_try(now) < math.inf
        or site.submissions.why_none(now)
        or any(bag.spec.aims or ledger.budget_of(bag.id) is not None for bag in bags)
        or any(map(_is_unclear, site.pilots.values()))
    )


def _is_unclear(pilot: Pilot) -> bool:
    """Whether the next answers of the scheduler decide what becomes of a pilot."""
    return bool(
        pilot.state is PilotState.SUBMITTING
        or pilot.leaving
        or pilot.misses
        or pilot.never
        or pilot.notes
        or pilot.limited_since is not None
        or pilot.without_worker_since is not None
        or (pilot.state is PilotState.RUNNING and pilot.first_hello is None)
    )
