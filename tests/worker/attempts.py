"""Attempts in this process, for tests of the worker's parts without a worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from adaptor.protocol.messages import AttemptKey
from adaptor.worker.tasks import WorkerTasks
from tests.living import PATIENCE

KEY = AttemptKey(1, 1, 1)


def turn(tasks: WorkerTasks, now: float | None = None) -> None:
    """One turn of a worker at a time (now: at present), without starting any more."""
    now = time.monotonic() if now is None else now
    tasks.tend(now)
    tasks.timers.run(now)
    tasks.start_ready(now)


def start(tasks: WorkerTasks, now: float | None = None) -> None:
    """Start what fits, and wait until its files are open."""
    tasks.start(time.monotonic() if now is None else now)
    tend_until(tasks, lambda: not tasks.openings.waiting)


def tend_until(tasks: WorkerTasks, condition: Callable[[], Any], later: float = 0.0) -> None:
    """Turns of a worker whose clock is `later` seconds ahead."""
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        turn(tasks, time.monotonic() + later)
        time.sleep(0.005)


def failing(error: OSError) -> Callable[..., int]:
    def spawn(*args: object, **more: object) -> int:
        raise error

    return spawn
