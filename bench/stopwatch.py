"""Wall seconds of commands and of calls."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def seconds(step: Callable[[], object]) -> float:
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def median_seconds(step: Callable[[], object], repetitions: int = 7) -> float:
    return statistics.median(seconds(step) for _ in range(repetitions))
