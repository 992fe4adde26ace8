"""Signals as something to poll for: a child has ended, or the worker is told to leave."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType

_TO_LEAVE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeup:
    """A pipe that becomes readable with every signal; only one may exist in a process."""

    def __init__(self) -> None:
        self.told_to_leave = ""
        """The name of the signal, once there was one."""
        self.fd, writer = os.pipe()
        for end in (self.fd, writer):
            os.set_blocking(end, False)
        # A full pipe wakes as well as another byte would.
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, self._on_child)
        for number in _TO_LEAVE:
            signal.signal(number, self._on_leave)

    def drain(self) -> None:
        """Forget the signals so far."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass

    def _on_child(self, _number: int, _frame: FrameType | None) -> None:
        """The byte in the pipe says it; a handler there must be, or Python would not write it."""

    def _on_leave(self, number: int, _frame: FrameType | None) -> None:
        self.told_to_leave = signal.Signals(number).name
