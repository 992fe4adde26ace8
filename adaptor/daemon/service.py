"""The running daemon: sockets, sites and periodic work around one broker and one journal."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from adaptor import __version__
from adaptor.broker.journal import Journal
from adaptor.config import Config
from adaptor.daemon import controlling, site
from adaptor.daemon.core import Core
from adaptor.daemon.desk import Desk
from adaptor.daemon.lock import LOCK
from adaptor.daemon.reachable import last_port, write_access_files
from adaptor.daemon.server import Message, Server, addresses
from adaptor.daemon.site_state import SiteState
from adaptor.daemon.sites import limits_of, make_backends, terms_of
from adaptor.errors import AdaptorError, JournalError
from adaptor.link import control
from adaptor.link.access import CLIENT_ACCESS, WORKER_ACCESS
from adaptor.link.keys import load_or_make_keys
from adaptor.link.state import private_directory
from adaptor.views import DaemonView

log = logging.getLogger(__name__)

PAUSE = {"local": 0.2, "slurm": 1.0}
"""Seconds between two steps of a site, at least, by backend."""
POLL = {"local": 1.0, "slurm": 15.0}
"""Seconds between two looks at the queue, by backend, where the site does not say."""
LINGER = 3.0
"""Seconds that a private daemon stays after the last bag, so that its user sees the end."""


class Service:
    def __init__(self, directory: Path, config: Config) -> None:
        """Raises AdaptorError: something cannot be opened, or a scheduler does not answer."""
        self.directory = directory
        self.config = config
        self.started = time.time()
        self.stalled = ""
        """Why nothing can be written down now; empty: it can."""
        private_directory(directory / "pilots")
        self._keys = load_or_make_keys(directory)
        backends = make_backends(config, directory)
        limits = {name: limits_of(config.sites[name], backend) for name, backend in backends.items()}
        self._loopback = all(backend.loopback for backend in backends.values())
        self.server = Server(
            self._keys,
            loopback=self._loopback,
            worker_port=config.daemon.port or last_port(directory / WORKER_ACCESS),
            client_port=last_port(directory / CLIENT_ACCESS),
        )
        terms = {name: terms_of(config.sites[name], limits[name]) for name in backends}
        self.core = Core(directory, Journal(directory), self.server, terms)
        self.sites = {
            name: SiteState(name, config.sites[name], backend, limits[name], self.core)
            for name, backend in backends.items()
        }
        self._load_pilots()
        self.desk = Desk(self.core, self.sites, self._stall)
        self._stop = asyncio.Event()
        self._stopping = False
        self._stop_pilots = False
        self._until_idle = False
        self._last_busy = time.monotonic()

    async def run(self, until_idle: bool = False, on_ready: Callable[[], None] | None = None) -> None:
        """Serve until told to stop, or, for a private daemon, until there is nothing left to do.

        `on_ready` is called once the daemon can be asked.
        """
        self._until_idle = until_idle
        write_access_files(self.directory, self._keys, self.server, self.config.daemon.host, self._loopback)
        scheduler = self._schedule()
        tasks = [
            asyncio.create_task(self.server.serve(self._on_workers, self._on_clients)),
            *(asyncio.create_task(self._run_site(state)) for state in self.sites.values()),
            asyncio.create_task(self._stopped()),
        ]
        if on_ready is not None:
            on_ready()
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if self._stop_pilots:
                await self._end_pilots()
        finally:
            scheduler.shutdown(wait=False)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.server.close()
            self.core.journal.close()

    def stop(self, *, pilots: bool) -> None:
        """End the daemon soon; with `pilots`, cancel them first."""
        self._stopping, self._stop_pilots = True, pilots
        asyncio.get_running_loop().call_later(0.1, self._stop.set)

    def _may_step(self) -> bool:
        return not self.stalled and not self._stopping

    async def _stopped(self) -> None:
        await self._stop.wait()

    def wake_sites(self) -> None:
        for state in self.sites.values():
            state.wake.set()

    def _schedule(self) -> AsyncIOScheduler:
        scheduler = AsyncIOScheduler(job_defaults={"coalesce": True, "max_instances": 1})
        for state in self.sites.values():
            seconds = state.config.poll_interval or POLL[state.config.backend]
            scheduler.add_job(_wake, "interval", [state], seconds=float(seconds), id=f"look at {state.name}")
        scheduler.add_job(self._every_second, "interval", seconds=1.0, id="silence and idleness")
        scheduler.add_job(self._try_journal, "interval", seconds=5.0, id="journal")
        scheduler.start()
        self.wake_sites()
        return scheduler

    async def _run_site(self, state: SiteState) -> None:
        while True:
            try:
                await site.run(state, PAUSE[state.config.backend], self._may_step)
            except JournalError as error:
                self._stall(error)
            except Exception:
                log.exception("a step of site %s failed; it is tried again", state.name)
                state.problem = (
                    f"a step failed by an error of the adaptor's own: see {self.directory}/daemon.log"
                )
                await asyncio.sleep(1.0)

    # --- the journal fails and comes back --------------------------------------------------------

    def _stall(self, error: Exception) -> None:
        """Stop deciding until the journal can be written again; workers keep their results meanwhile."""
        if not self.stalled:
            log.error("%s", error)
        self.stalled = str(error)

    async def _try_journal(self) -> None:
        """After a failure: begin again from what the journal has, as after a restart."""
        if not self.stalled:
            return
        try:
            self.core.journal.explain(
                time.time(), "", "problem", f"it can be written again after: {self.stalled}"
            )
            self.core.recover()
            self._load_pilots()
        except JournalError as error:
            self.stalled = str(error)
            return
        log.info("the journal can be written again")
        self.stalled = ""
        self.wake_sites()

    def _load_pilots(self) -> None:
        for state in self.sites.values():
            state.load_pilots()
        for row in self.core.journal.pilots_in_system():
            if row.site not in self.sites:
                log.warning(
                    "pilot %d (%s) is at site %s, which the configuration no longer has: it is left alone",
                    row.id,
                    row.job,
                    row.site,
                )

    # --- messages and periodic work --------------------------------------------------------------

    async def _on_workers(self, batch: list[Message]) -> None:
        if self.stalled:
            return
        try:
            await self.desk.hear(batch)
        except Exception as error:
            log.exception("an error of the adaptor's own; it begins again from the journal")
            self._stall(error)

    async def _on_clients(self, batch: list[Message]) -> None:
        for identity, data in batch:
            try:
                answer = await controlling.serve(self, data)
            except JournalError as error:
                self._stall(error)
                answer = control.Failure(str(error))
            except AdaptorError as error:
                answer = control.Failure(str(error))
            except Exception as error:
                log.exception("a question could not be served")
                answer = control.Failure(f"an error of the daemon's own: {error!r}; see daemon.log")
            self._last_busy = time.monotonic()
            await self.server.send_client(identity, control.encode(answer))

    async def _every_second(self) -> None:
        """Workers that fell silent are lost; a daemon that is not needed, or has lost its folder, ends."""
        if not (self.directory / LOCK).exists():
            log.error("the state directory %s is gone: stopping", self.directory)
            self._stop.set()
        if self.stalled:
            return
        try:
            await self.desk.miss_silent(float(self.config.daemon.worker_timeout))
        except JournalError as error:
            self._stall(error)
        if self.core.broker.busy or any(state.pilots for state in self.sites.values()):
            self._last_busy = time.monotonic()
        if self._until_idle and time.monotonic() - self._last_busy > LINGER:
            self._stop.set()

    async def _end_pilots(self) -> None:
        """Cancel all pilots and see them off, within their grace time."""
        for state in self.sites.values():
            await site.cancel_all(state, "the daemon was stopped together with its pilots")
        grace = max(float(state.config.grace_time) for state in self.sites.values()) + 5.0
        until = time.monotonic() + grace
        while time.monotonic() < until and any(state.pilots for state in self.sites.values()):
            for state in self.sites.values():
                await site.see_off(state)
            await asyncio.sleep(0.2)

    def view(self) -> DaemonView:
        host = self.config.daemon.host
        return DaemonView(
            pid=os.getpid(),
            host=socket.gethostname(),
            version=__version__,
            started=self.started,
            state_directory=str(self.directory),
            addresses=list(addresses(host, self.server.worker_port, loopback=self._loopback)),
            workers=len(self.core.broker.books.workers),
            stalled=self.stalled,
        )


async def _wake(state: SiteState) -> None:
    """A coroutine, so that it runs in the loop; plain functions get a thread of the scheduler's."""
    state.wake.set()
