"""The end of all pilots, when the daemon is stopped together with them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.daemon.step import cancel_all, observe_only

_BEYOND_GRACE = 5.0
"""Seconds that schedulers have beyond the grace time of workers."""


async def end_pilots(core: Core, sites: Collection[Site]) -> None:
    """Cancel all pilots and see them off; a site that does not answer keeps nobody from leaving in time.

    Raises:
        JournalError: an end could not be written down.
    """
    if not sites:
        return
    core.journal.note_user_change_of_all("pilots cancelled", core.now())
    grace = max(float(state.config.grace_time) for state in sites) + _BEYOND_GRACE
    tasks = [asyncio.create_task(_end(state)) for state in sites]
    done, silent = await asyncio.wait(tasks, timeout=grace)
    for task in silent:
        task.cancel()
    await asyncio.gather(*silent, return_exceptions=True)
    for task in done:
        task.result()


async def _end(state: Site) -> None:
    await cancel_all(state, "the daemon was stopped together with its pilots")
    while state.pilots:
        await observe_only(state)
        await asyncio.sleep(0.2)
