"""Looking at processes that tasks of the tests have started."""

from __future__ import annotations

import time
from pathlib import Path


def read_pids(path: Path, count: int) -> list[int]:
    """Wait until so many numbers of processes are in the file."""
    limit = time.monotonic() + 30
    while True:
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= count:
            return [int(line) for line in lines]
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.01)
