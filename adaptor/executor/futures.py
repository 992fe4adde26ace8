"""The future of one call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class CallFuture(Future[Any]):
    """As `concurrent.futures.Future`; `cancel` asks the daemon whether the call has started."""

    def __init__(self, on_cancel: Callable[[CallFuture], bool]) -> None:
        super().__init__()
        self.task: int | None = None
        """The number of its task, once the daemon has it."""
        self.sending = False
        """Whether it is on its way to the daemon, or there."""
        self.withdrawn = False
        """Whether it was cancelled before it was sent."""
        self._on_cancel = on_cancel
        self._lock = threading.Lock()
        self._told = False
        """Whether those who wait know that it was cancelled, or that it has begun."""

    def cancel(self) -> bool:
        """Cancel the call unless it has started; returns whether it is cancelled now."""
        if self.done():
            return self.cancelled()
        return self._on_cancel(self)

    def be_cancelled(self) -> None:
        """It is cancelled."""
        if super().cancel():
            with self._lock:
                first, self._told = not self._told, True
            if first:
                self.set_running_or_notify_cancel()

    def begin(self) -> bool:
        """Before its result is set. Returns False if it was cancelled."""
        with self._lock:
            if self._told:
                return False
            self._told = True
            return self.set_running_or_notify_cancel()
