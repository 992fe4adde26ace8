"""The daemon's end of a spool: reads what workers have written, and writes the daemon's messages to them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from adaptor.backoff import Backoff
from adaptor.config.schema import SiteConfig
from adaptor.daemon.clock import system_clock
from adaptor.daemon.server import PeerMessage
from adaptor.errors import AdaptorError
from adaptor.protocol import maildir
from adaptor.protocol.files.local import LOCAL_FILES, FileEnd, Files, FilesError, FileWork, NewFile
from adaptor.protocol.spool import Spool
from backends.findings import Finding, error, ok

_TRIAL_FILE = maildir.file_name(maildir.SpoolConnection(0, "00000000", 1).name, 1)


def latency_of(config: SiteConfig) -> float:
    """Seconds that a message to or from a worker of the site usually takes, at most."""
    return maildir.LATENCY if config.spool else 0.0


def open_spool(name: str, config: SiteConfig, instance: str, files: Files) -> Spool:
    """A site's spool, in a folder of its own: several daemons and sites may share the parent.

    Raises AdaptorError: it is a folder of this machine and cannot be used.
    """
    spool = Spool(Path(f"{config.spool}/{instance}.{name}"), files)
    try:
        if config.ssh is None:
            spool.locate()
    except FilesError as error:
        raise AdaptorError(f"sites.{name}.spool: {error}") from error
    return spool


def check_spool(site: SiteConfig) -> list[Finding]:
    """Findings on the site's spool: a file is written, read and removed.

    No findings if the site has no spool on this machine.
    """
    if site.spool is None or site.ssh is not None:
        return []
    folder = Path(site.spool).expanduser()
    trial = folder / "check"
    try:
        spool = Spool(trial)
        file = NewFile(os.fsencode(maildir.from_workers(spool.locate()) / _TRIAL_FILE), b"a trial")
        LOCAL_FILES.run(FileWork(write=[file]))
        done, _ = spool.run()
        LOCAL_FILES.run(FileWork(remove=[os.fsencode(trial)]))
    except FilesError as problem:
        return [error(f"spool: {problem}")]
    if file.data not in [end.data for end in done.ends]:
        return [error(f"spool: {folder}: a file written there cannot be read at once; is it cached?")]
    return [ok(f"spool {folder} is private and writable; the nodes must see it, too")]


log = logging.getLogger(__name__)

_SLOWEST_ALONE = 5.0  # seconds between two looks, at most, while no worker is known
_SWEEP = 30.0  # seconds between two sweeps


class SpoolChannel:
    """The messages in both directions over one connection of a worker."""

    def __init__(self, connection: maildir.SpoolConnection, outgoing: maildir.Outgoing) -> None:
        self.connection = connection
        self.worker = b""  # the worker's name, known from its first file on
        self.last = 0  # the number of the worker's file that was taken last
        self.outgoing = outgoing


class SpoolEndpoint:
    """One site's spool. Workers are known by the names in their sealed files."""

    def __init__(
        self,
        spool: Spool,
        seal: maildir.Seal,
        *,
        hear: Callable[[list[PeerMessage]], Awaitable[None]],
        pilots: Callable[[], Collection[int]],
        complain: Callable[[str], None],
    ) -> None:
        """
        Args:
            hear: handles the workers' messages, in order.
            pilots: returns the site's pilots in the system.
            complain: receives each new reason why the spool cannot be used.
        """
        self.heard_until = system_clock()
        """Epoch seconds up to which `hear` has had everything that workers wrote."""
        self._spool = spool
        self._seal = seal
        self._hear = hear
        self._pilots = pilots
        self._complain = complain
        self._run = secrets.token_hex(4)
        self._channels: dict[maildir.SpoolConnection, SpoolChannel] = {}
        self._current: dict[bytes, SpoolChannel] = {}  # by worker: the channel of its newest connection
        self._taken: list[bytes] = []  # worker files that the next exchange removes
        self._pace = maildir.LookPace(_SLOWEST_ALONE)
        self._problem = ""
        self._failures = Backoff(first=2, most=30)
        self._next_sweep = 0.0
        self._news = asyncio.Event()
        self._busy = asyncio.Lock()

    def send(self, worker: bytes, data: bytes) -> bool:
        """Queue a message for the next exchange. Returns False if the worker does not use this spool."""
        channel = self._current.get(worker)
        if channel is None:
            return False
        if not channel.outgoing.add(data):
            log.warning("worker %s does not read its messages: one is dropped", worker.decode())
        self._news.set()
        return True

    async def locate(self) -> str:
        """The address for the workers' access file. Raises FilesError."""
        async with self._busy:
            return maildir.address_of(await asyncio.to_thread(self._spool.locate))

    async def run(self, may_listen: Callable[[], bool]) -> None:
        """Exchange files in turns, until cancelled."""
        while True:
            try:
                if may_listen():
                    await self.exchange()
            except Exception as error:
                log.exception("internal error in an exchange with the spool; the daemon tries again")
                self._failures.failed(system_clock(), str(error))
            if self._failures.pause:
                await asyncio.sleep(self._failures.pause)
                continue
            await asyncio.sleep(maildir.QUICKEST)
            with contextlib.suppress(asyncio.TimeoutError):  # the next look is due
                await asyncio.wait_for(self._news.wait(), self._pace.pause - maildir.QUICKEST)

    async def exchange(self) -> None:
        """Read what workers wrote, have it handled, and write the answers."""
        async with self._busy:
            began = system_clock()
            found = await self._exchange(collect=True)
            if found is None:
                return
            ends, more = found
            messages = self._take(ends)
            if messages:
                await self._hear(messages)
            if self._taken or self._news.is_set():  # so that answers do not wait for the next look
                await self._exchange(collect=False)
            if not more:
                self.heard_until = began
            self._pace.slowest = maildir.SLOWEST if self._current else _SLOWEST_ALONE
            if messages or more:
                self._pace.speed_up()
            else:
                self._pace.slow_down()

    async def _exchange(self, *, collect: bool) -> tuple[list[FileEnd], bool] | None:
        """The workers' files, and whether there are more; None: the spool cannot be used."""
        self._news.clear()
        pilots = None
        if collect and time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + _SWEEP
            pilots = frozenset(self._pilots())
            self._forget([each for each in self._channels if each.pilot not in pilots])
        writing = {
            file.path: (channel, file)
            for channel in self._channels.values()
            if (file := channel.outgoing.next_file(channel.worker.decode()))
        }
        try:
            done, more = await asyncio.to_thread(
                self._spool.run,
                remove=self._taken,
                write=[file for _, file in writing.values()],
                pilots=pilots,
                collect=collect,
            )
        except FilesError as error:
            problem = str(error)
            self._failures.failed(system_clock(), problem)
            if problem != self._problem:
                self._problem = problem
                log.warning("the spool cannot be used: %s", problem)
                self._complain(f"its spool cannot be used: {problem}")
            return None
        if self._problem:
            log.info("the spool can be used again")
        self._problem = ""
        self._failures.succeeded()
        self._taken = []
        for path, (channel, _) in writing.items():
            if path in done.homeless:
                self._forget([channel.connection])
            elif path not in done.held:
                channel.outgoing.done()
                if channel.outgoing.due():
                    self._news.set()
        return done.ends, more

    def _forget(self, connections: list[maildir.SpoolConnection]) -> None:
        for connection in connections:
            channel = self._channels.pop(connection)
            if self._current.get(channel.worker) is channel:
                del self._current[channel.worker]

    def _take(self, ends: list[FileEnd]) -> list[PeerMessage]:
        """The messages in these files, in order for each worker; the next exchange removes the files."""
        messages: list[PeerMessage] = []
        for end in ends:
            self._taken.append(end.path)
            envelope = maildir.opened(end, self._spool.locate(), self._seal, log.warning)
            parsed = maildir.parse_worker_file(maildir.path_of(end).name)
            if envelope is None or parsed is None:
                continue
            connection = parsed[0]
            if connection not in self._channels:
                spool = self._spool.locate()
                outgoing = maildir.Outgoing(
                    spool, maildir.for_worker(spool, connection.name), self._run, self._seal
                )
                self._channels[connection] = SpoolChannel(connection, outgoing)
            channel = self._channels[connection]
            channel.worker = envelope.worker.encode()
            if parsed[1] > channel.last:
                channel.last = parsed[1]
                if self._make_current(channel):
                    messages += [(channel.worker, message) for message in envelope.messages]
        return messages

    def _make_current(self, channel: SpoolChannel) -> bool:
        """Answer the worker on this channel from now on; False if the worker has opened a newer one."""
        now = self._current.get(channel.worker)
        if now is not None and now is not channel:
            if now.connection.token == channel.connection.token and now.connection.n > channel.connection.n:
                return False
            self._forget([now.connection])
        self._current[channel.worker] = channel
        return True
