"""Threads for calls that may take long, where the system may give none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

NO_THREAD = "the system gives no more threads; its limit of processes may be reached (ulimit -u)"


class Threads(ThreadPoolExecutor):
    """A pool that goes on with the threads that it has, if the system gives no more.

    Calls then wait longer for a free one. The pool asks for a new thread again with each call.
    """

    def __init__(self, most: int, name: str = "") -> None:
        """Raises RuntimeError: not even one thread can be had."""
        super().__init__(most, name)
        self._uncounted = 0
        """Calls that got no thread: the pool takes the thread that does one for idle once more than it is."""
        try:
            self.submit(int).result()
        except RuntimeError:
            self.shutdown(wait=False, cancel_futures=True)
            raise

    def _adjust_thread_count(self) -> None:
        while self._uncounted and self._idle_semaphore.acquire(blocking=False):
            self._uncounted -= 1
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise
            self._uncounted += 1
