"""A daemon with 100,000 waiting tasks: handing them in, its memory, its idleness, its answers."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import psutil

from bench.private_daemon import PrivateDaemon, private_daemon
from bench.stopwatch import median_seconds, seconds
from bench.table import Row, timed

TASKS = 100_000
_SETTLING = 5.0
_IDLE = 10.0
"""Seconds over which the idle daemon is watched."""


def rows() -> Iterator[Row]:
    with private_daemon(processors=1) as place:
        bag = place.folder / "waiting.bag"
        bag.write_text("sleep 3600\n" * TASKS)
        submitted = seconds(lambda: place.adaptor("submit", str(bag)))
        yield timed(f"adaptor submit, {TASKS:,} tasks", submitted, 5.0)
        yield from _daemon_rows(psutil.Process(place.pid()))
        yield from _status_rows(place)


def _daemon_rows(daemon: psutil.Process) -> Iterator[Row]:
    time.sleep(_SETTLING)
    before = daemon.cpu_times()
    time.sleep(_IDLE)
    after = daemon.cpu_times()
    busy = after.user + after.system - before.user - before.system
    resident = daemon.memory_info().rss / 1e6
    yield Row("daemon with these waiting: resident", f"{resident:.0f} MB", "≤ 150 MB")
    yield Row(f"… its share of a core over {_IDLE:g} s", f"{100 * busy / _IDLE:.1f} %", "≤ 1 %")


def _status_rows(place: PrivateDaemon) -> Iterator[Row]:
    python = median_seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    status = median_seconds(lambda: place.adaptor("status"))
    ratio = f" = {status / python:.1f} × `python -c pass`"
    yield timed("adaptor status, median of 7", status, 0.300, ratio)
