"""One step of one site: observe, decide, act. No rule lives here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adaptor.daemon.acting import cancel_unwanted, carry_out
from adaptor.daemon.donated_nodes import end_outdated, look_at_nodes
from adaptor.daemon.late_limits import learn_limits
from adaptor.daemon.local_runs import keep_runs
from adaptor.daemon.observing import observe_pilots
from adaptor.daemon.site import Site
from adaptor.decisions.decide import decide


async def run(site: Site, pause: float, may_step: Callable[[], bool]) -> None:
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


async def step(site: Site) -> None:
    """Observe, decide, act. A scheduler that does not answer changes nothing. Raises JournalError."""
    site.memory.keep_failures(site.core.broker)
    if not site.memory.is_active(site.core.broker):
        site.memory.read(None)
        return
    await _observe(site)
    core = site.core
    async with core.deciding:
        decision = await asyncio.to_thread(decide, core.snapshot(site.name, core.now()))
        core.decided = decision.memory
        site.memory.submitting = decision.submits
    await carry_out(site, decision.actions)


async def _observe(site: Site) -> None:
    """Limits, pilots, nodes and queue, as far as anybody needs to know."""
    await learn_limits(site)
    await end_outdated(site)
    await observe_pilots(site)
    await cancel_unwanted(site)
    site.memory.expect_requests(site.core.broker)
    await look_at_nodes(site)
    wanted = site.memory.wants_queue(site.core.broker)
    site.memory.unreachable = site.remote_folder.problem if site.remote_folder is not None else ""
    site.read(await site.look() if wanted else None)
    keep_runs(site)


async def cancel_all(site: Site, reason: str) -> None:
    """Take every pilot back, queued or running."""
    for pilot in site.pilots.values():
        pilot.cancel_reason = pilot.cancel_reason or reason
    await cancel_unwanted(site)


async def observe_only(site: Site) -> None:
    """Requests are no longer made. Raises JournalError."""
    await observe_pilots(site)
    await cancel_unwanted(site)
