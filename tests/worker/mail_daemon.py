"""The fake daemon behind a mailbox: a real postman in a real folder, and no socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from adaptor.daemon.spool.endpoint import Postman
from adaptor.protocol.messages import ToWorker, decode_from_worker, encode
from adaptor.protocol.spool.directory import DirectoryRoom
from adaptor.protocol.spool.layout import address_of
from adaptor.protocol.spool.seal import Seal
from tests.worker.fake_daemon import FakeDaemon


class MailDaemon(FakeDaemon):
    """Workers that are told the mailbox's address come to it; see `FakeDaemon`."""

    def __init__(self, folder: Path) -> None:
        self.room = folder / "mail" / "room"
        self.postman: Postman | None = None
        self.pilots = [7]
        self._loop = asyncio.new_event_loop()
        super().__init__(folder)

    def open(self, port: int = 0) -> None:
        """A new life of the daemon at the same mailbox."""

        async def hear(batch: list[tuple[bytes, bytes]]) -> None:
            for self._peer, data in batch:
                self._take(decode_from_worker(data))

        self.postman = self.hire(hear)
        self.write_access([address_of(self.room)])

    def hire(self, hear: Callable[[list[tuple[bytes, bytes]]], Awaitable[None]]) -> Postman:
        def complain(problem: str) -> None:
            raise AssertionError(problem)

        return Postman(
            DirectoryRoom(self.room),
            Seal(self._worker[1].decode()),
            hear=hear,
            pilots=lambda: self.pilots,
            complain=complain,
        )

    def close(self) -> None:
        self.postman = None

    def end(self) -> None:
        self.close()
        self._context.term()
        self._loop.close()

    def send(self, message: ToWorker) -> None:
        self.send_raw(encode(message))

    def send_raw(self, data: bytes) -> None:
        assert self.postman is not None
        assert self._peer is not None, "no worker has said anything"
        self.postman.post(self._peer, data)

    def serve(self, seconds: float) -> None:
        if self.postman is not None:
            self._loop.run_until_complete(self.postman.exchange())
        time.sleep(seconds)
