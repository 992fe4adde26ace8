"""Forget old bags and shrink the journal's file, in slices that leave time for everything else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from itertools import islice

from adaptor.bundles.archives import old_archives
from adaptor.daemon.core import Core
from adaptor.errors import JournalError, UsageError
from adaptor.journal import forgetting
from adaptor.journal.adding import forget_stale, forget_unpublished

log = logging.getLogger(__name__)

INTERVAL = 60.0  # seconds between two looks for bags that are older than `keep`
STALE = 3600.0  # seconds without a further task after which a bag that is not published is forgotten
RETRIED = 7 * 86_400.0
"""Seconds after the end of a bag with failed tasks for which its archive stays: they may be retried."""
_AT_ONCE = 20  # bags that one transaction takes away
_LOOKED_AT = 200  # old bags that are looked at to find those
_SHARE = 0.2  # the largest share of the time that compaction takes; the rest is for all other work
_LEAST_PAUSE = 0.01
_GAP = 7 * 86_400.0
"""Seconds without an entry in the journal after which the clock may be wrong, as after a boot."""
_SETTLING = 3600.0  # seconds for which such a clock must go on before bags are forgotten because of their age


class Retention:
    def __init__(self, core: Core, keep: float | None) -> None:
        """`keep`: seconds for which ended bags are kept; None: until the user forgets them."""
        self._core = core
        self.keep = keep
        last, now = core.journal.read(forgetting.last_written), core.now()
        self._from = now + _SETTLING if last is not None and now - last > _GAP else now
        """Epoch seconds from which bags may be forgotten because of their age."""
        self._wake = asyncio.Event()
        self._dirty = True  # whether anything may be left of forgotten bags

    async def run(self, may_write: Callable[[], bool], stall: Callable[[JournalError], None]) -> None:
        """Age and compact, until cancelled."""
        while True:
            try:
                if may_write():
                    await self._forget_old(may_write)
                    self._remove_archives()
                    await self.compact(may_write)
            except JournalError as error:
                stall(error)
            except Exception:
                log.exception("the journal was not compacted; it is tried again")
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), INTERVAL)
            except (TimeoutError, asyncio.TimeoutError):
                continue

    def forget(self, bags: list[int], *, old: bool = False) -> int:
        """Forget these bags, all or none; their rows go soon. Returns the number of bags.

        `old`: because of their age (`journal.keep`): what they have shown of their kinds stays.

        Raises:
            UsageError: one has not ended, or a pilot of it has not.
            JournalError: nothing is forgotten.
        """
        core, books = self._core, self._core.treasury.ledger
        with core.journal.transaction() as db:
            for bag in bags:
                if bag in core.broker.state.bags:
                    raise UsageError(f"bag {bag} has not ended: wait for it, or end it: adaptor cancel {bag}")
                forgetting.check_forgettable(db, bag, books)
                forgetting.forget_bag(db, bag, books, old=old)
        for bag in bags:
            core.forget_bag(bag)
        self._dirty = self._dirty or bool(bags)
        self._wake.set()
        return len(bags)

    def forget_unpublished(self, key: str) -> None:
        """Forget the bag opened with this key; the rows of its tasks go soon. Raises JournalError."""
        self._forget_unpublished(lambda db: forget_unpublished(db, key))

    def _forget_unpublished(self, forget: Callable[[sqlite3.Connection], int]) -> None:
        with self._core.journal.transaction() as db:
            if forget(db):
                self._dirty = True
                self._wake.set()

    async def _forget_old(self, may_write: Callable[[], bool]) -> None:
        """Forget bags that ended before `keep`; those with a pilot in the system wait for its end."""
        forgotten = 0
        self._forget_unpublished(lambda db: forget_stale(db, self._core.now() - STALE))
        while may_write() and (ready := self._old()):
            forgotten += self.forget(ready, old=True)
            await asyncio.sleep(_LEAST_PAUSE)
        if forgotten:
            log.info("bags that ended more than `journal.keep` ago are forgotten: %d", forgotten)

    def _remove_archives(self) -> None:
        """Remove the archives of what bags have staged that no task will need."""
        core, now = self._core, self._core.now()
        if not (old := old_archives(core.directory, now)):
            return
        needed = core.journal.read(forgetting.needed_bundles, now - RETRIED)
        for digest, path in old.items():
            if digest not in needed:
                with contextlib.suppress(OSError):
                    path.unlink()
                    log.info("%s: no bag needs it any more", path)

    def _old(self) -> list[int]:
        now = self._core.now()
        if self.keep is None or now < self._from:
            return []
        old = self._core.journal.read(forgetting.ended_before, now - self.keep, _LOOKED_AT)
        return list(islice(filter(self._is_forgettable, old), _AT_ONCE))

    def _is_forgettable(self, bag: int) -> bool:
        core = self._core
        try:
            core.journal.read(forgetting.check_forgettable, bag, core.treasury.ledger)
        except UsageError:
            return False
        return bag not in core.broker.state.bags

    async def compact(self, may_write: Callable[[], bool]) -> None:
        """Remove what is left of forgotten bags. Raises JournalError."""
        if not self._dirty:
            return
        began = time.monotonic()
        for _ in self._steps():
            took = time.monotonic() - began
            await asyncio.sleep(max(_LEAST_PAUSE, took * (1 - _SHARE) / _SHARE))
            if not may_write():
                return
            began = time.monotonic()
        self._dirty = False

    def _steps(self) -> Iterator[None]:
        """Yields after each short transaction."""
        journal = self._core.journal
        more = True
        while more:
            with journal.transaction() as db:
                more = forgetting.forget_some(db, self._core.now())
            yield
        more = True
        while more:
            more = journal.read(forgetting.shrink)
            yield
