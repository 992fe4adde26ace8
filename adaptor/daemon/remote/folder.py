"""A remote site's folder on its login node, and the access file in it that the site's workers read."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from adaptor.backoff import Backoff
from adaptor.daemon.clock import system_clock
from adaptor.daemon.remote.routes import Route
from adaptor.errors import AdaptorError
from adaptor.protocol.access import RELAYED_ACCESS, Access
from backends.machines.base import Machine

log = logging.getLogger(__name__)

_LOOK = 0.5  # seconds between two looks at the route
_GRACE = 60.0  # seconds after a repair of the route for which the daemon extends the workers' timeout
_KEEP_ALIVE = 5.0  # seconds between two calls of `Route.keep_alive`


class RemoteFolder:
    """`run` makes the folder and the route of the workers, and makes them again after a loss."""

    def __init__(
        self,
        machine: Machine,
        folder: Path,
        *,
        access: Callable[[tuple[str, ...]], Access],
        route: Route,
        changed: Callable[[str], None],
    ) -> None:
        """
        Args:
            folder: for everything of this daemon and site; relative to the home directory there.
            access: returns the content of the access file for these addresses.
            route: of the site's workers to the daemon.
            changed: receives each new value of `problem`.
        """
        self.folder = folder  # absolute once the login node has been reached
        self.problem = "its login node has not been reached yet"
        """Why workers could not reach the daemon; empty: they can."""
        self._machine = machine
        self._access = access
        self._route = route
        self._changed = changed
        self._pause = Backoff(first=1, most=60)
        self._lost_at = system_clock()
        self._open_since = 0.0

    @property
    def caveat(self) -> str:
        """A reason that may still keep workers from the daemon; empty: none is known."""
        return self._route.caveat

    @property
    def access(self) -> Path:
        return self.folder / RELAYED_ACCESS

    def heard_until(self, now: float) -> float:
        """Epoch seconds up to which the daemon could hear the site's workers.

        After a repair, workers get the lost time back: they have to connect again.
        """
        if self.problem:
            return self._lost_at
        open_for = now - self._open_since
        return self._lost_at + open_for if open_for < _GRACE else now

    async def run(self) -> None:
        """Open the folder and the route, and again after each loss, until cancelled."""
        while True:
            try:
                self.folder = await asyncio.to_thread(self._machine.private_folder, self.folder)
                access = msgspec.json.encode(self._access(await self._route.open(self.folder)))
                await asyncio.to_thread(self._machine.write_private, self.access, access)
                self._pause.succeeded()
                self._set_problem("")
                await self._watch()
                self._set_problem("the connection and the route of its workers were lost; reconnecting")
            except AdaptorError as error:
                self._pause.failed(system_clock(), str(error))
                self._set_problem(str(error))
            await asyncio.sleep(max(_LOOK, self._pause.until - system_clock()))

    async def close(self) -> None:
        await self._route.close()

    async def _watch(self) -> None:
        """Return when the route is lost."""
        next_sign = 0.0
        while self._route.alive:
            if time.monotonic() >= next_sign:
                try:
                    self._route.keep_alive()
                except OSError:
                    return
                next_sign = time.monotonic() + _KEEP_ALIVE
            await asyncio.sleep(_LOOK)

    def _set_problem(self, problem: str) -> None:
        if problem == self.problem:
            return
        if not problem:
            self._open_since = system_clock()
        elif not self.problem:
            self._lost_at = system_clock()
        self.problem = problem
        self._changed(problem)
