"""The daemon's gates, in a thread of their own: nobody's handshake waits for a step of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import threading

from adaptor.protocol.gate import Gate


class Doors:
    def __init__(self, *gates: Gate) -> None:
        self._gates = gates
        self._lock = threading.Lock()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serving: asyncio.Future[list[None]] | None = None
        self._over = threading.Event()

    def keep(self) -> None:
        """Serve the gates in this thread, until `close`."""
        try:
            asyncio.run(self._keep())
        finally:
            self._over.set()

    async def _keep(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._loop = asyncio.get_running_loop()
            self._serving = asyncio.gather(*(gate.serve() for gate in self._gates))
        with contextlib.suppress(asyncio.CancelledError):
            await self._serving

    def close(self) -> None:
        """End `keep`, whether it has begun or not; returns when all connections are closed."""
        with self._lock:
            self._closed = True
            loop, serving = self._loop, self._serving
        if loop is not None and serving is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                loop.call_soon_threadsafe(serving.cancel)
            self._over.wait()
