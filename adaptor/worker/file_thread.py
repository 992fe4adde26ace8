"""A thread for calls that may hang with their file system, so that they stop nobody else."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_IDLE = 10.0
"""Seconds without a call after which the thread ends; the next call starts another."""


class Call(Generic[T]):
    """A call under way in another thread."""

    def __init__(self, function: Callable[[], T], drop: Callable[[T], object]) -> None:
        self._function = function
        self._drop = drop
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._dropped = False
        self._values: list[T] = []
        """What it returned: one value, or none if it raised or was dropped."""
        self._error: Exception | None = None

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    @property
    def failed(self) -> bool:
        """Whether it has ended by raising."""
        return self.ended and self._error is not None

    def wait(self, seconds: float) -> bool:
        """Returns whether it has ended, after `seconds` at most."""
        return self._ended.wait(seconds)

    def value(self) -> T:
        """What an ended call returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._values[0]

    def drop(self) -> None:
        """Nobody wants its value any more, be it there already or come later."""
        self._dropped = True
        self._clear()

    def run(self) -> None:
        try:
            if not self._dropped:
                value = self._function()
                with self._lock:
                    self._values.append(value)
        except Exception as error:
            self._error = error
        if self._dropped:
            self._clear()
        self._ended.set()

    def _clear(self) -> None:
        with self._lock:
            values, self._values = self._values, []
        for value in values:
            self._drop(value)


class FileThread:
    """Carries out calls in their order; the worker's end does not wait for it."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Sequence[Call[Any]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._runs = False

    def call(self, function: Callable[[], T], drop: Callable[[T], object] = lambda _value: None) -> Call[T]:
        """`drop` gets the value of a call that was dropped."""
        call = Call(function, drop)
        self.carry_out([call])
        return call

    def carry_out(self, calls: Sequence[Call[Any]]) -> None:
        """Several calls, for which the thread is woken once."""
        with self._lock:
            self._calls.put(calls)
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._work, name="files", daemon=True).start()

    def _work(self) -> None:
        while True:
            try:
                for call in self._calls.get(timeout=_IDLE):
                    call.run()
            except queue.Empty:
                with self._lock:
                    if self._calls.empty():
                        self._runs = False
                        return
