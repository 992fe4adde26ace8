"""A port of this machine at which a node tells what time it has."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from adaptor.daemon.clock import system_clock

_LONGEST = 200
"""Bytes that are read of a caller."""


class ClockPort:
    """Callers must say the word; others are ignored."""

    def __init__(self, word: str, port: int) -> None:
        """Raises OSError: no port can be bound."""
        self._word = word
        self.skews: dict[str, float] = {}
        """By node: seconds by which the clock of one that has called is ahead."""
        self._listener = _bound(port)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                with caller, contextlib.suppress(OSError, ValueError):
                    caller.settimeout(2.0)
                    word, time, node = caller.recv(_LONGEST).decode().split()
                    if word == self._word:
                        self.skews[node] = float(time) - system_clock()


@contextlib.contextmanager
def clock_port(word: str, port: int) -> Iterator[ClockPort]:
    """`port`: taken where it is free; 0: any."""
    opened = ClockPort(word, port)
    try:
        yield opened
    finally:
        opened.close()


def _bound(port: int) -> socket.socket:
    if port:
        with contextlib.suppress(OSError):
            return socket.create_server(("0.0.0.0", port))  # noqa: S104  (every caller must say the word)
    return socket.create_server(("0.0.0.0", 0))  # noqa: S104
