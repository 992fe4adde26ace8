"""The running daemon: sockets, sites and periodic work around one broker and one journal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from adaptor import __version__, api
from adaptor.api import DaemonView, UpkeepView
from adaptor.config.policy import policy_of
from adaptor.daemon.client.commands import ClientEndpoint
from adaptor.daemon.clock import system_clock
from adaptor.daemon.configured import Configured, changes, check_removed, checked_anew
from adaptor.daemon.core import Core
from adaptor.daemon.ground.kept_files import KeptFiles
from adaptor.daemon.ground.threads import NO_THREAD, Threads
from adaptor.daemon.jobs.record import JOB_VARIABLE, replaced
from adaptor.daemon.notices import NotableEvents
from adaptor.daemon.observing import learn_starts, learns_starts, read_history, read_newer_history
from adaptor.daemon.remote.folder import RemoteFolder
from adaptor.daemon.remote.machines import make_machine
from adaptor.daemon.removed_sites import settle_removed
from adaptor.daemon.server import (
    PeerMessage,
    PortLimits,
    Server,
    last_worker_port,
    write_client_access,
    write_key_access,
    write_site_access,
)
from adaptor.daemon.site import Site
from adaptor.daemon.sites import first_limits, make_backends, stays_inside, terms_of, unknown_limits
from adaptor.daemon.step import end_pilots, poll
from adaptor.daemon.step import run as run_site
from adaptor.daemon.timers import Every, keep_synced, new_scheduler
from adaptor.daemon.transports import set_up_transport
from adaptor.daemon.treasury import costs_of
from adaptor.daemon.upkeep.idle_bags import IdleBags
from adaptor.daemon.upkeep.meters import Meters, journal_view
from adaptor.daemon.upkeep.notifying import Notifier
from adaptor.daemon.upkeep.retention import Retention
from adaptor.daemon.worker_endpoint import WorkerEndpoint
from adaptor.errors import JournalError, os_problem
from adaptor.journal.damage import DamagedJournalError
from adaptor.journal.journal import Journal
from adaptor.journal.own_files import ReplacedJournalError
from adaptor.protocol.access import CLIENT_ACCESS, AccessError, last_port, worker_access
from adaptor.protocol.keys import KEYS, load_or_make_keys
from adaptor.protocol.listener import addresses
from adaptor.protocol.state_directory import private_directory
from adaptor.units import format_duration
from backends.registry import backend_type

log = logging.getLogger(__name__)

_LOOK = 1.0  # seconds between two looks whether the time of day was set, and whether the folder is there
_NO_THREAD_PAUSE = 5.0  # seconds
LINGER = 3.0  # seconds that a private daemon stays after the last bag, so that its user sees the end


class Service:
    def __init__(
        self,
        directory: Path,
        configured: Configured,
        port_limits: PortLimits,
        started: float | None = None,
        problem: str = "",
        displaced: Callable[[], str] = lambda: "",
        away: str = "",
    ) -> None:
        """Serve by a configuration.

        Args:
            displaced: tells why the state directory is not this daemon's any more; empty: it is. May raise
                OSError.
            started: when this process began to serve, epoch seconds; None: now.
            problem: why the configuration is not the one that was asked for.
            away: what `adaptor why` says of the time without a daemon before this one; empty: nothing.

        Raises AdaptorError: something cannot be opened, or no scheduler answers.
        """
        system_clock.adopt()
        self.directory = directory
        self.configured = configured
        self.config = config = configured.config
        self.started = system_clock() if started is None else started
        self.next: Configured | None = None
        """Configuration of the service that follows this one; None: none follows."""
        self._problem = problem
        self._displaced, self._away = displaced, away
        self._kept_files = KeptFiles()
        self.stalled = ""  # why nothing can be written down now; empty: it can
        self._damaged = False
        private_directory(directory / "pilots")
        self._keys = load_or_make_keys(directory)
        machines = {name: make_machine(each) for name, each in config.sites.items()}
        backends = make_backends(config, directory, machines)
        known = first_limits(config, backends) if configured.limits is None else configured.limits
        limits = {name: known.get(name) or unknown_limits(each) for name, each in config.sites.items()}
        self._loopback = all(stays_inside(each) for each in config.sites.values())
        self.server = Server(
            self._keys,
            port_limits,
            loopback=self._loopback,
            worker_port=config.daemon.port or last_worker_port(directory, config.sites),
            client_port=last_port(directory / CLIENT_ACCESS),
        )
        terms = {name: terms_of(config.sites[name], limits[name]) for name in backends}
        self.core = Core(
            directory,
            Journal(directory),
            self.server,
            terms,
            costs_of(config.sites),
            notable=NotableEvents(config.notify, hook=bool(config.hooks.on_bag_end)),
        )
        self.core.listeners.room = max(1, port_limits.clients.proven // 2)
        self.sites = {
            name: Site(
                name,
                config.sites[name],
                backend,
                limits[name],
                self.core,
                machines[name],
                limits_known=name in known,
                poll=self._poll_of(name),
            )
            for name, backend in backends.items()
        }
        for state in self.sites.values():
            set_up_transport(state, self._keys, self._on_workers, self._stall)
        self._load_pilots()
        self.workers = WorkerEndpoint(self.core, self.sites, self._stall)
        keep = config.journal.keep
        self.retention = Retention(self.core, None if keep is None else float(keep))
        self.notifier = Notifier(self.core, config.notify, config.hooks)
        self._meters = Meters(self.core.journal.path)
        clients = self.server.clients
        self._clients = ClientEndpoint(self, self._stall, clients.send, clients.connected, clients.reads)
        self._stop = asyncio.Event()
        self._stopping = False
        self._stop_pilots = False
        self._until_idle = False
        self._idle_bags = IdleBags()
        self._last_busy = time.monotonic()

    def _poll_of(self, name: str) -> float:
        """Seconds between two looks at the queue of a site."""
        config = self.config.sites[name]
        least = policy_of(config).keys.poll_interval or 0.0
        return float(max(least, config.poll_interval or backend_type(config.backend).poll_interval))

    async def run(self, until_idle: bool = False, on_ready: Callable[[], None] | None = None) -> None:
        """Serve until told to stop, or, for a private daemon, until there is nothing left to do.

        `on_ready` is called once the daemon can be asked.
        """
        self._until_idle = until_idle
        # Each site may have several questions under way; those that hang must not hold the others up.
        asyncio.get_running_loop().set_default_executor(await self._threads(8 + 6 * len(self.sites)))
        await self._write_access_files()
        if self._away and self.core.broker.busy:
            self.core.journal.explain(self.core.now(), "", "problem", self._away)
        await self._settle_removed()
        await self._measure()
        scheduler = self._schedule()
        spools = [state.spool for state in self.sites.values() if state.spool is not None]
        work: list[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = [
            *((f"site {name}", partial(self._run_site, state)) for name, state in self.sites.items()),
            *(("a spool", partial(spool.run, self._may_listen)) for spool in spools),
            *(("a site's folder", folder.run) for folder in self._remote_folders()),
            ("notifying", partial(self.notifier.run, self._may_listen, self._stall)),
            ("forgetting", partial(self.retention.run, self._may_listen, self._stall)),
            ("syncing", partial(keep_synced, self.core.journal, self._may_listen, self._stall)),
            ("watching the clock", self._watch_clock),
            ("watching the state directory", self._watch_folder),
        ]
        tasks = [
            asyncio.create_task(self.server.serve(self._on_workers, self._on_clients)),
            *(asyncio.create_task(self._go_on(*each)) for each in work),
            asyncio.create_task(self._stopped()),
        ]
        beside = [asyncio.create_task(read_history(state)) for state in self.sites.values()]
        if on_ready is not None:
            on_ready()
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if self._stop_pilots:
                await end_pilots(self.core, self.sites.values())
        finally:
            scheduler.shutdown(wait=False)
            for task in (*tasks, *beside):
                task.cancel()
            await asyncio.gather(*tasks, *beside, return_exceptions=True)
            for folder in self._remote_folders():
                await folder.close()
            for state in self.sites.values():
                await asyncio.to_thread(state.machine.close)
            self.core.journal.close()

    async def _threads(self, most: int) -> Threads:
        """The threads of all calls; waits until the system gives the first one."""
        while True:
            with contextlib.suppress(RuntimeError):
                return Threads(most)
            log.error("the daemon waits: %s", NO_THREAD)
            await asyncio.sleep(_NO_THREAD_PAUSE)

    async def _go_on(self, what: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do this to its end; it is tried again after a failure, which ends no daemon."""
        while True:
            try:
                return await work()
            except JournalError as error:
                self._stall(error)
            except Exception:
                log.exception("internal error: %s failed; it is tried again", what)
            await asyncio.sleep(_LOOK)

    def _remote_folders(self) -> list[RemoteFolder]:
        return [state.remote_folder for state in self.sites.values() if state.remote_folder is not None]

    def _addresses(self) -> tuple[str, ...]:
        return addresses(self.config.daemon.host, self.server.worker_port, loopback=self._loopback)

    async def _write_access_files(self) -> None:
        """A remote folder writes its own."""
        for name, state in self.sites.items():
            if state.remote_folder is None:
                found = self._addresses() if state.spool is None else (await state.spool.locate(),)
                write_site_access(self.directory, self._keys, name, found)
        host = self.config.daemon.host
        write_client_access(self.directory, self._keys, self.server, host, self._loopback)
        written = (worker_access(name) for name, state in self.sites.items() if state.remote_folder is None)
        for name in (KEYS, CLIENT_ACCESS, *written):
            self._kept_files.keep(self.directory / name)
        for name, key in self.core.grants.keys.items():
            if not key.revoked:
                self.server.clients.party.accept(key.certificate)
                with contextlib.suppress(AccessError):  # its file is gone: `adaptor mcp grant` makes another
                    write_key_access(self.directory, name)

    def stop(self, *, pilots: bool, following: Configured | None = None) -> None:
        """End the service soon; with `pilots`, cancel them first. `following`: what the next one goes by."""
        self._stopping, self._stop_pilots, self.next = True, pilots, following
        asyncio.get_running_loop().call_later(0.1, self._stop.set)

    async def reload(self) -> api.Reloading:
        """Take over the configuration as its file is now. Raises AdaptorError: it cannot be used."""
        instance = self.core.journal.instance
        now = await asyncio.to_thread(checked_anew, self.configured, self.directory, instance)
        found = changes(self.configured, now)
        pilots = [(pilot, name) for name, site in self.sites.items() for pilot in site.pilots]
        bags = [(bag.id, bag.spec.sites) for bag in self.core.broker.state.bags.values()]
        check_removed(list(self.sites), now, pilots, bags, self.directory)
        if found.any:
            log.info("the configuration is loaded again: %s", found)
            self.stop(pilots=False, following=now)
        else:
            self.configured = msgspec.structs.replace(self.configured, digest=now.digest)
        return found

    @property
    def present(self) -> Configured:
        """The configuration with the limits that are known by now, so that no scheduler need answer again."""
        known = {name: site.memory.limits for name, site in self.sites.items() if site.memory.limits_known}
        return msgspec.structs.replace(self.configured, limits=known)

    def _may_listen(self) -> bool:
        return not self.stalled

    async def _stopped(self) -> None:
        await self._stop.wait()

    async def _watch_clock(self) -> None:
        """Begin again once the time of day was set: times in memory and in APScheduler are of the old one."""
        while self._stopping or not (step := system_clock.step):
            await asyncio.sleep(_LOOK)
        while self.stalled:
            await self._try_journal()
            await asyncio.sleep(_LOOK)
        way = "forward" if step > 0 else "back"
        told = f"the clock was set {way} by {format_duration(abs(step))}: the daemon begins again"
        log.warning("%s", told)
        with contextlib.suppress(JournalError):
            self.core.journal.note_clock_set(self.core.now(), told)
        self.stop(pilots=False, following=self.present)
        await self._stopped()

    def wake_sites(self) -> None:
        for state in self.sites.values():
            state.wake.set()

    def _schedule(self) -> AsyncIOScheduler:
        scheduler = new_scheduler()
        for state in self.sites.values():
            every = Every(state.memory.settings.poll)
            scheduler.add_job(_poll, every, [state], id=f"look at {state.name}")
            if learns_starts(state.config):
                scheduler.add_job(self._learn_starts, Every(60.0), [state], id=f"starts at {state.name}")
        scheduler.add_job(self._every_second, Every(1.0), id="silence and idleness")
        scheduler.add_job(self._try_journal, Every(5.0), id="journal")
        scheduler.add_job(self._measure, Every(60.0), id="rates")
        scheduler.add_job(self._settle_removed, Every(10.0), id="removed sites")
        scheduler.start()
        self.wake_sites()
        return scheduler

    async def _learn_starts(self, state: Site) -> None:
        if self.stalled or self._stopping:
            return
        try:
            await learn_starts(state)
            await read_newer_history(state)
        except JournalError as error:
            self._stall(error)
        except Exception:
            log.exception("the queue of site %s taught nothing; it is looked at again", state.name)

    async def _run_site(self, state: Site) -> None:
        while True:
            try:
                await run_site(state, lambda: not self.stalled and not self._stopping)
            except JournalError as error:
                self._stall(error)
            except Exception:
                log.exception("a step of site %s failed; it is tried again", state.name)
                state.memory.problem = (
                    f"internal error in a step of the site: see {self.directory}/daemon.log"
                )
                await asyncio.sleep(1.0)

    # --- the journal fails and comes back --------------------------------------------------------

    def _stall(self, error: Exception) -> None:
        """Stop deciding until the journal can be written again; workers keep their results meanwhile."""
        if not self.stalled:
            log.error("%s", error)
        self.stalled, self._damaged = str(error), self._damaged or isinstance(error, DamagedJournalError)

    async def _try_journal(self) -> None:
        """Try the journal after a failure; begin again from what it has, as after a restart.

        A journal that is damaged stays so; one that was removed is written again.
        """
        if not self.stalled or self._damaged:
            return
        try:
            if self.core.journal.put_back():
                log.warning("the journal was removed: it is written again, with all that it had")
            self.core.journal.explain(
                self.core.now(),
                "",
                "problem",
                f"the journal can be written again; the failure was: {self.stalled}",
            )
            self.core.recover()
            self._load_pilots()
        except ReplacedJournalError as error:
            self._leave(error)
            return
        except JournalError as error:
            self._stall(error)
            return
        log.info("the journal can be written again")
        self.stalled = ""
        self.wake_sites()

    def _leave(self, error: ReplacedJournalError) -> None:
        """End the daemon, as it can keep nothing: another file has the place of the journal."""
        try:
            kept = f"what this daemon has written is in {self.core.journal.keep_copy(self.core.now())}"
        except JournalError as failed:
            kept = str(failed)
        log.error("stopping: %s; %s", error, kept)
        self._damaged = True
        self.stop(pilots=False)

    async def _settle_removed(self) -> None:
        """Budgets get back what pilots of sites that left the configuration cannot cost any more."""
        if self.stalled:
            return
        try:
            if await settle_removed(self.core):
                self.wake_sites()
        except JournalError as error:
            self._stall(error)

    def _load_pilots(self) -> None:
        for state in self.sites.values():
            state.load_pilots()

    # --- messages and periodic work --------------------------------------------------------------

    async def _on_workers(self, batch: list[PeerMessage]) -> None:
        if self.stalled:
            return
        try:
            await self.workers.hear(batch)
        except Exception as error:
            log.exception("internal error; the daemon begins again from the journal")
            self._stall(error)

    async def _on_clients(self, batch: list[PeerMessage]) -> None:
        try:
            await self._clients.receive(batch)
        except Exception:
            log.exception("internal error: a question was not answered")
        self._last_busy = time.monotonic()

    async def _watch_folder(self) -> None:
        """End the daemon once its folder is gone, or another folder or another daemon has its place.

        A thread looks: the file system may hang. A look that fails tells nothing, and is tried again.
        """
        told, own = "", os.environ.get(JOB_VARIABLE, "")
        while True:
            try:
                if why := await asyncio.to_thread(self._displaced):
                    why = f"the state directory {self.directory} is not this daemon's any more: {why}"
                    break
                if why := await asyncio.to_thread(replaced, self.directory, own):
                    break
                await asyncio.to_thread(self._kept_files.restore)
                problem = ""
            except OSError as error:
                problem = f"the state directory cannot be looked at: {os_problem(error)}"
            if problem != told:
                log.warning("%s", problem or "the state directory can be looked at again")
                told = problem
            await asyncio.sleep(_LOOK)
        log.warning("stopping: %s", why)
        self.stop(pilots=False)
        await self._stopped()

    async def _every_second(self) -> None:
        """Workers that fell silent are lost; a daemon that is not needed ends."""
        if self.stalled:
            return
        try:
            await self.workers.miss_silent(float(self.config.daemon.worker_timeout))
            bags = self.core.broker.state.bags.values()
            due = self._idle_bags.due(bags, time.monotonic(), self._clients.followed)
            for bag in due:
                self.core.broker.close(bag)
            if due or self.core.broker.due(self.core.now()):
                await self.core.commit()
                self.wake_sites()
        except JournalError as error:
            self._stall(error)
        pilots = any(state.pilots for state in self.sites.values())
        if self.core.broker.busy or pilots or self.notifier.busy:
            self._last_busy = time.monotonic()
        if self._until_idle and time.monotonic() - self._last_busy > LINGER:
            self._stop.set()

    def view(self) -> DaemonView:
        return DaemonView(
            pid=os.getpid(),
            host=socket.gethostname(),
            version=__version__,
            started=self.started,
            state_directory=str(self.directory),
            workers=len(self.core.broker.state.workers),
            unfinished=sum(not bag.ended for bag in self.core.broker.state.bags.values()),
            stalled=self.stalled,
            until_idle=self._until_idle,
            config_file="" if (path := self.configured.path) is None else str(path.absolute()),
            config_digest=self.configured.digest,
            config_problem=self._problem,
        )

    def upkeep(self) -> UpkeepView:
        return UpkeepView(
            addresses=list(self._addresses()),
            journal=journal_view(self.core.journal, self.retention.keep),
            rates=self._meters.rates(self.core.now(), self.core.results),
        )

    async def _measure(self) -> None:
        self._meters.measure(self.core.now(), self.core.results)


async def _poll(state: Site) -> None:
    """A coroutine, so that it runs in the loop; plain functions get a thread of the scheduler's."""
    poll(state)
