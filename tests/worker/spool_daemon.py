"""The fake daemon behind a spool: a real endpoint in a real folder, and no socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from adaptor.daemon.spool import SpoolEndpoint
from adaptor.protocol.maildir import Seal, address_of
from adaptor.protocol.messages import ToWorker, decode_from_worker, encode
from adaptor.protocol.spool import Spool
from tests.worker.fake_daemon import FakeDaemon


class SpoolDaemon(FakeDaemon):
    """Workers that are told the spool's address come to it; see `FakeDaemon`."""

    def __init__(self, folder: Path) -> None:
        self.spool = folder / "spools" / "spool"
        self.endpoint: SpoolEndpoint | None = None
        self.pilots = [7]
        self._loop = asyncio.new_event_loop()
        super().__init__(folder)

    def open(self, port: int = 0) -> None:
        """A new run of the daemon at the same spool."""

        async def hear(batch: list[tuple[bytes, bytes]]) -> None:
            for self._peer, data in batch:
                self._take(decode_from_worker(data))

        self.endpoint = self.make_endpoint(hear)
        self.write_access([address_of(self.spool)])

    def make_endpoint(self, hear: Callable[[list[tuple[bytes, bytes]]], Awaitable[None]]) -> SpoolEndpoint:
        def complain(problem: str) -> None:
            raise AssertionError(problem)

        spool = Spool(self.spool)
        spool.locate()
        return SpoolEndpoint(
            spool,
            Seal(self.identity.key),
            hear=hear,
            pilots=lambda: self.pilots,
            complain=complain,
        )

    @property
    def listening(self) -> bool:
        return self.endpoint is not None

    def close(self) -> None:
        self.endpoint = None

    def end(self) -> None:
        self.close()
        self._loop.close()

    def send(self, message: ToWorker) -> None:
        self.send_raw(encode(message))

    def send_raw(self, data: bytes) -> None:
        assert self.endpoint is not None
        assert self._peer is not None, "no worker has said anything"
        self.endpoint.send(self._peer, data)

    def serve(self, seconds: float) -> None:
        if self.endpoint is not None:
            self._loop.run_until_complete(self.endpoint.exchange())
        time.sleep(seconds)
