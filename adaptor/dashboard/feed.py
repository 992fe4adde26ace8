"""One page for all viewers: gathered while there are any, and sent by the sections that changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

from adaptor.dashboard.page import Page, sections

log = logging.getLogger(__name__)

PAUSE = 2.0  # seconds between two pages
KEEP_ALIVE = 15.0  # seconds after which a silent stream says that it is alive, for the proxies in between


class Feed:
    def __init__(
        self,
        gather: Callable[[], Page],
        soon: Callable[[], Page] | None = None,
        pause: float = PAUSE,
        longer: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Args:
        gather: takes time, and is called in a thread.
        soon: the same without what takes long, for the first look.
        pause: seconds between two pages.
        longer: seconds that there have to be between them now, if more.
        """
        self._gather = gather
        self._soon = soon
        self._pause = pause
        self._longer = longer
        self._viewers = 0
        self._task: asyncio.Task[None] | None = None
        self._sections: dict[str, bytes] = {}
        self._changed = asyncio.Condition()

    @property
    def busy(self) -> bool:
        """True if the page is being gathered: there are viewers, or the last one has just left."""
        return self._task is not None

    async def now(self) -> dict[str, bytes]:
        """The page, gathered for this call unless there are viewers already."""
        if self._viewers and self._sections:
            return self._sections
        return sections(await asyncio.to_thread(self._gather))

    async def follow(self) -> AsyncIterator[dict[str, bytes]]:
        """The whole page, then what changes of it; nothing in it: only a sign of life."""
        self._viewers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._go_on())
        try:
            seen: dict[str, bytes] = {}
            while True:
                changed = {name: part for name, part in self._sections.items() if seen.get(name) != part}
                seen = dict(self._sections)
                if changed:
                    yield changed
                try:
                    async with self._changed:
                        await asyncio.wait_for(self._changed.wait(), KEEP_ALIVE)
                except asyncio.TimeoutError:
                    yield {}
        finally:
            self._viewers -= 1

    async def _go_on(self) -> None:
        try:
            if self._soon is not None:
                await self._renew(self._soon)
            while self._viewers:
                await self._renew(self._gather)
                await asyncio.sleep(max(self._pause, self._longer()))
        finally:
            self._task = None
            self._sections = {}

    async def _renew(self, gather: Callable[[], Page]) -> None:
        try:
            found = sections(await asyncio.to_thread(gather))
        except Exception:
            log.exception("the page could not be gathered")  # readers of the page see the age of theirs
            return
        async with self._changed:
            self._sections = found
            self._changed.notify_all()
