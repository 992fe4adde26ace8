"""One site's loop: observe its scheduler, decide, act."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

from adaptor.crafting.multisite.site_status import Part
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Decision, Demand, Issue, Withdraw, Withhold
from adaptor.daemon.acting import cancel_unwanted, issue, withdraw
from adaptor.daemon.credits.affording import Affordable, TooDear, within_budgets
from adaptor.daemon.credits.aiming import aimed
from adaptor.daemon.credits.replanning import keep_to_quotes
from adaptor.daemon.donation.leases import beside_leases
from adaptor.daemon.donation.observation import with_lent
from adaptor.daemon.donation.outdated import end_outdated
from adaptor.daemon.donation.step import lend_and_take_back
from adaptor.daemon.holdoff import why_held_back
from adaptor.daemon.late_limits import learn_limits
from adaptor.daemon.observing import observe_pilots
from adaptor.daemon.site_state import SiteState, Withheld
from adaptor.daemon.viewing import view_of
from adaptor.model import QueueState

_DIGITS = re.compile(r"[\d.]+")


async def run(site: SiteState, pause: float, may_step: Callable[[], bool]) -> None:
    """Step whenever woken, with a short pause in between so that the scheduler is left in peace.

    Raises:
        JournalError: a step could not be written down.
    """
    while True:
        await site.wake.wait()
        site.wake.clear()
        if may_step():
            await step(site)
        await asyncio.sleep(pause)


async def step(site: SiteState) -> None:
    """Observe, decide, act. A scheduler that does not answer changes nothing. Raises JournalError."""
    if not site.active:
        site.queue = None
        return
    await learn_limits(site)
    await end_outdated(site)
    await observe_pilots(site)
    await cancel_unwanted(site)
    await lend_and_take_back(site)
    await keep_to_quotes(site, time.time())
    demands = site.core.broker.demands(site.name)
    waiting = any(demand.waiting for demand in demands)
    site.queue = await _read_queue(site) if waiting else None
    site.seen = site.queue or site.seen
    if site.peers is not None and waiting:
        site.peers.heard(site.name)
    await _decide(site, demands, waiting)
    await cancel_unwanted(site)


async def _read_queue(site: SiteState) -> QueueState | None:
    queue = await site.ask(site.backend.queue_state)
    return None if queue is None else with_lent(site, queue)


async def cancel_all(site: SiteState, reason: str) -> None:
    """Take every pilot back, queued or running."""
    for pilot in site.pilots.values():
        pilot.cancel_reason = pilot.cancel_reason or reason
    await cancel_unwanted(site)


async def see_off(site: SiteState) -> None:
    """Observe only: requests are no longer made. Raises JournalError."""
    await observe_pilots(site)
    await cancel_unwanted(site)


async def _decide(site: SiteState, demands: tuple[Demand, ...], waiting: bool) -> None:
    now = time.time()
    if waiting and (held_back := why_held_back(site, now)):
        _withhold(site, held_back)
        return
    part = None
    if site.peers is not None:
        if awaited := site.peers.awaited(site.name):
            _withhold(site, f"waits a moment for the queue of {' and '.join(sorted(awaited))} to be read")
            return
        await site.peers.weigh(site.name)
        demands = site.core.broker.demands(site.name)
        part = site.peers.part(site.name, demands)
    site.paused.clear()
    demands = aimed(site, tuple(beside_leases(site, demand) for demand in demands), now)
    await _act(site, plan(view_of(site, site.queue, now, demands), part), part)


async def _act(site: SiteState, decisions: list[Decision], part: Part | None) -> None:
    """Carry decisions out, as long as requests are taken."""
    site.intended = tuple(each for each in decisions if isinstance(each, Issue))
    untold = part.reason if part is not None else ""
    try:
        for decision in decisions:
            match decision:
                case Issue():
                    site.intended = site.intended[1:]
                    found = _affordable(site, decision)
                    if found is None:
                        continue
                    if untold:
                        site.explain("divided", untold)
                        untold = ""
                    if not await issue(site, found.issue, found.shares):
                        break
                case Withdraw():
                    withdraw(site, decision)
                case Withhold():
                    _withhold(site, decision.reason)
    finally:
        site.intended = ()


def _affordable(site: SiteState, wanted: Issue) -> Affordable | None:
    """The request as far as the budgets reach; None, with the reason kept, where that is not far enough."""
    match within_budgets(site, wanted):
        case Affordable() as found:
            return found
        case TooDear(reason):
            site.paused[wanted.demand.bag] = reason
            _withhold(site, reason)
    return None


def _withhold(site: SiteState, reason: str) -> None:
    """Keep the reason; where only its numbers have changed, in place of the last one."""
    last = site.withheld
    if reason == last.text:
        return
    same = _DIGITS.sub("", reason) == _DIGITS.sub("", last.text)
    row = site.explain("withheld", reason, replacing=last.row if same else None)
    site.withheld = Withheld(reason, row)
