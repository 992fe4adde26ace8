"""`python -m bench.worker_files [CHECKOUT]`: a worker's time for each /bin/true, with parts of it left out.

In turn: the worker as it is, one that opens no files ahead, one that hands no empty files on, and that of a
CHECKOUT. Ratios to the first in the same round, medians. CPU seconds are the worker's own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from adaptor.protocol.messages import AttemptKey, Lease
from bench.table import Row, show
from tests.source_tree import ROOT
from tests.worker.fake_daemon import Harness

ATTEMPTS = 2_000
ROUNDS = 7
_FIRST = 50  # attempts before the clock starts
_HELD = 200  # leases that the worker holds at most

_RUN = "; from adaptor.worker.__main__ import main; raise SystemExit(main())"
_PARTS = {
    "as it is": "pass",
    "no files opened ahead": "import adaptor.worker.openings as o; o.AHEAD = 0",
    "no empty files handed on": (
        "from adaptor.worker.output import OutputFolder as O; e = O.ended;"
        " O.ended = lambda self, key, alone: e(self, key, alone=False)"
    ),
}


class Took(msgspec.Struct, frozen=True):
    """Microseconds for each attempt."""

    cpu: float
    wall: float


def rows(checkout: str | None = None) -> Iterator[Row]:
    workers = {name: (code, str(ROOT)) for name, code in _PARTS.items()}
    if checkout is not None:
        workers[f"that of {checkout}"] = (_PARTS["as it is"], checkout)
    rounds = [
        {name: _measured(*workers[name]) for name in (list(workers), list(reversed(workers)))[number % 2]}
        for number in range(ROUNDS)
    ]
    first, *others = workers
    for name in workers:
        cpu, wall = (
            statistics.median(getattr(each[name], what) for each in rounds) for what in ("cpu", "wall")
        )
        yield Row(f"a worker, {name}: CPU and wall time", f"{cpu:,.0f} and {wall:,.0f} µs")
    for name in others:
        cpu, wall = (
            statistics.median(getattr(each[name], what) / getattr(each[first], what) for each in rounds)
            for what in ("cpu", "wall")
        )
        yield Row(f"{name}, beside the first", f"{cpu:.2f} × CPU, {wall:.2f} × wall")


def _measured(code: str, checkout: str) -> Took:
    with tempfile.TemporaryDirectory(prefix="adaptor-bench-", dir=ROOT) as name:
        harness = Harness(Path(name))
        environment = {**harness.environment(), "PYTHONPATH": checkout}
        worker = subprocess.Popen([sys.executable, "-c", code + _RUN], env=environment, cwd=name)
        harness.workers.append(worker)
        harness.daemon.until(lambda: harness.daemon.reports)
        try:
            _run(harness, range(_FIRST))
            cpu, wall = _cpu_seconds(worker.pid), time.perf_counter()
            _run(harness, range(_FIRST, _FIRST + ATTEMPTS))
            took = time.perf_counter() - wall
            return Took(1e6 * (_cpu_seconds(worker.pid) - cpu) / ATTEMPTS, 1e6 * took / ATTEMPTS)
        finally:
            harness.stop()


def _run(harness: Harness, numbers: range) -> None:
    """Have the worker run so many attempts; it gets leases as a daemon sends them, some ahead."""
    leases = [Lease(AttemptKey(1, number, 1), ["/bin/true"], 0.0) for number in numbers]
    before = len(harness.daemon.results)
    while (done := len(harness.daemon.results) - before) < len(numbers):
        free = _HELD - (len(numbers) - len(leases) - done)
        if leases and free >= _HELD // 2:
            harness.lease(*leases[:free])
            del leases[:free]
        harness.daemon.serve(0.02)


def _cpu_seconds(pid: int) -> float:
    """Seconds of a process itself, all its threads, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    show("The files of short attempts", rows(sys.argv[1] if len(sys.argv) > 1 else None))
