"""Looking at processes that tasks of the tests have started."""

from __future__ import annotations

import time
from pathlib import Path

import psutil


def alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(pid: int) -> bool:
    return not alive(pid)


def read_pids(path: Path, count: int) -> list[int]:
    """Wait until so many numbers of processes are in the file."""
    limit = time.monotonic() + 30
    while True:
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= count:
            return [int(line) for line in lines]
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.01)
