"""One site's loop: observe its scheduler, decide, act."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, Issue, PilotView, SiteRules, SiteView, Withdraw, Withhold
from adaptor.daemon.acting import cancel_unwanted, issue, withdraw
from adaptor.daemon.observing import observe_pilots
from adaptor.daemon.pilots import Pilot
from adaptor.daemon.site_state import SiteState, Withheld

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
    await observe_pilots(site)
    await cancel_unwanted(site)
    demands = site.core.broker.demands(site.name)
    waiting = any(demand.waiting for demand in demands)
    site.queue = await site.ask(site.backend.queue_state) if waiting else None
    await _decide(site, demands, waiting)
    await cancel_unwanted(site)


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
    if waiting and (held_back := _held_back(site, now)):
        _withhold(site, held_back)
        return
    rules = SiteRules(
        limits=site.limits,
        time_resolution=site.backend.time_resolution,
        slot_margin=site.backend.slot_margin,
        pad=site.pad,
        granularity=(site.config.processors_per_node or 1) if site.config.whole_nodes else 1,
    )
    view = SiteView(
        now=now,
        queue=site.queue,
        rules=rules,
        heuristic=site.config.heuristic,
        pilots=tuple(_view(site, pilot) for pilot in site.pilots.values()),
        demands=demands,
    )
    for decision in plan(view):
        match decision:
            case Issue():
                if not await issue(site, decision):
                    break
            case Withdraw():
                withdraw(site, decision)
            case Withhold():
                _withhold(site, decision.reason)


def _held_back(site: SiteState, now: float) -> str:
    """Why no request may be made yet after failures; empty: none stands in the way."""
    if site.refusals.waiting(now):
        return f"the last request failed ({site.refusals.reason}); next try at {_clock(site.refusals.until)}"
    if site.fruitless.waiting(now):
        return (
            f"{site.fruitless.failures} pilots in a row ended without running a task "
            f"({site.fruitless.reason}); next try at {_clock(site.fruitless.until)}"
        )
    return ""


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _view(site: SiteState, pilot: Pilot) -> PilotView:
    workers = [worker for worker in site.core.broker.of_pilot(pilot.id) if not worker.awaited]
    heard = pilot.first_hello is not None and bool(workers)
    return pilot.view(sum(worker.processors for worker in workers) if heard else None)


def _withhold(site: SiteState, reason: str) -> None:
    """Keep the reason; where only its numbers have changed, in place of the last one."""
    last = site.withheld
    if reason == last.text:
        return
    same = _DIGITS.sub("", reason) == _DIGITS.sub("", last.text)
    row = site.explain("withheld", reason, replacing=last.row if same else None)
    site.withheld = Withheld(reason, row)
