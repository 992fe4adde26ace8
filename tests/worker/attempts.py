"""Attempts in this process, for tests of the worker's parts without a worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from adaptor.protocol.messages import AttemptKey
from adaptor.worker.tasks import Tasks

KEY = AttemptKey(1, 1, 1)


def tend_until(tasks: Tasks, condition: Callable[[], Any]) -> None:
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        tasks.tend(time.monotonic())
        time.sleep(0.005)


def failing(error: OSError) -> Callable[..., int]:
    def spawn(*args: object, **more: object) -> int:
        raise error

    return spawn
