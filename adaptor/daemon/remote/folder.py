"""A distant site's folder on its login node, and the access file in it that its workers read."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from adaptor.backoff import Backoff
from adaptor.daemon.remote.routes import Way
from adaptor.errors import AdaptorError
from adaptor.protocol.access import RELAYED_ACCESS, Access
from backends.machines.base import Machine

log = logging.getLogger(__name__)

_LOOK = 0.5
"""Seconds between two looks whether the way stands."""
_GRACE = 60.0
"""Seconds for which workers are borne with after the way stands again."""
_BEAT = 5.0
"""Seconds between two signs of life."""


class Outpost:
    """Kept as it should be by `run`, whatever becomes of the connection."""

    def __init__(
        self,
        machine: Machine,
        folder: Path,
        *,
        access: Callable[[tuple[str, ...]], Access],
        way: Way,
        changed: Callable[[str], None],
    ) -> None:
        """
        Args:
            folder: for everything of this daemon and site; relative to the home directory there.
            access: what the access file holds for such addresses.
            way: by which its workers come.
            changed: is told each new state of `problem`.
        """
        self.folder = folder
        """Absolute once it has been reached."""
        self.problem = "its login node has not been reached yet"
        """Why workers could not reach the daemon; empty: they can."""
        self._machine = machine
        self._access = access
        self._way = way
        self._changed = changed
        self._pause = Backoff(first=1, most=60)
        self._lost_at = time.time()
        self._stands_since = 0.0

    @property
    def doubt(self) -> str:
        """What may be in the way of workers all the same."""
        return self._way.doubt

    @property
    def access(self) -> Path:
        return self.folder / RELAYED_ACCESS

    def heard_until(self, now: float) -> float:
        """Epoch seconds up to which its workers could be heard.

        A while that was lost is given back to them: they have to find the way again.
        """
        if self.problem:
            return self._lost_at
        stood = now - self._stands_since
        return self._lost_at + stood if stood < _GRACE else now

    async def run(self) -> None:
        """Reach it, and again when the tunnel was lost, until cancelled."""
        while True:
            try:
                await self._reach()
                self._pause.succeeded()
                self._say("")
                await self._while_it_stands()
                self._say("the way of its workers was lost with the connection; it is being made again")
            except AdaptorError as error:
                self._pause.failed(time.time(), str(error))
                self._say(str(error))
            await asyncio.sleep(max(_LOOK, self._pause.until - time.time()))

    async def close(self) -> None:
        await self._way.close()

    async def _reach(self) -> None:
        """Raises AdaptorError."""
        self.folder = await asyncio.to_thread(self._machine.private_folder, self.folder)
        access = msgspec.json.encode(self._access(await self._way.open(self.folder)))
        await asyncio.to_thread(self._machine.write_private, self.access, access)

    async def _while_it_stands(self) -> None:
        next_beat = 0.0
        while self._way.alive:
            if time.monotonic() >= next_beat:
                try:
                    self._way.beat()
                except OSError:
                    return
                next_beat = time.monotonic() + _BEAT
            await asyncio.sleep(_LOOK)

    def _say(self, problem: str) -> None:
        if problem == self.problem:
            return
        if not problem:
            self._stands_since = time.time()
        elif not self.problem:
            self._lost_at = time.time()
        self.problem = problem
        self._changed(problem)
