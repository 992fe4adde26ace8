"""`python -m bench.executors [PEERS]`: calls of Python functions on two slots of this machine, side by side.

PEERS is the interpreter of an environment with parsl and distributed, which the project does not need itself;
without it they are left out. Each runs as a program of its own, one after the other: it starts its processes,
has a few calls run, and then measures.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.private_daemon import private_daemon
from bench.table import Row, show

SLOTS = 2
CALLS = 10_000
SHORT = 1_000
"""Calls of 10 ms."""
ALONE = 300
"""Calls one after the other."""
LARGE = 1_000
"""Results of 1 MB."""
ROUNDS = 3
_TIMEOUT = 300.0
TIMES = 3
"""Goal of the project: this multiple of the calls of Parsl and of Dask."""

_OURS = """
import adaptor
executor = adaptor.Executor(name="bench")
submit = executor.submit
"""
_POOL = """
from concurrent.futures import ProcessPoolExecutor
executor = ProcessPoolExecutor(2)
submit = executor.submit
"""
_PARSL = """
import parsl
from parsl.concurrent import ParslPoolExecutor
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider
parsl.set_file_logger("parsl.log", level=50)
provider = LocalProvider(max_blocks=1)
htex = HighThroughputExecutor(max_workers_per_node=2, address="127.0.0.1", provider=provider)
executor = ParslPoolExecutor(Config(executors=[htex], run_dir="runs", initialize_logging=False))
submit = executor.submit
"""
_DASK = """
from distributed import Client, LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    executor = Client(cluster).get_executor(pure=False)
submit = lambda *call: executor.submit(*call)
"""
_MEASURE = """
import json, statistics, sys, time

def nothing():
    return None

def sleep(seconds):
    import time
    time.sleep(seconds)

def megabyte():
    return bytes(1_000_000)

def took(function, arguments):
    begin = time.perf_counter()
    for future in [submit(function, *given) for given in arguments]:
        future.result()
    return time.perf_counter() - begin

if __name__ == "__main__":
    calls, short, large, alone = map(int, sys.argv[1:])
    took(sleep, [(0.5,)] * 4)
    print(json.dumps({
        "calls": took(nothing, [()] * calls),
        "short": took(sleep, [(0.01,)] * short),
        "large": took(megabyte, [()] * large),
        "alone": statistics.median(took(nothing, [()]) for _ in range(alone)),
    }), flush=True)
    executor.shutdown()
"""


_TRUE = """
import sys, time

def run_true():
    import subprocess
    subprocess.run(["/bin/true"])

if __name__ == "__main__":
    for count in (4, int(sys.argv[1])):
        begin = time.perf_counter()
        for future in [submit(run_true) for _ in range(count)]:
            future.result()
    print(time.perf_counter() - begin, flush=True)
    executor.shutdown()
"""
_PEERS = {"Parsl, HTEX": _PARSL, "Dask.distributed": _DASK}


class Times(msgspec.Struct, frozen=True):
    """Seconds."""

    calls: float
    short: float
    large: float
    alone: float
    """Median seconds of one call."""


def rows(peers: str | None = None) -> Iterator[Row]:
    found: dict[str, list[Times]] = {}
    for _ in range(ROUNDS):  # in turn, for the machine is busier at one time than at another
        found.setdefault("ProcessPoolExecutor", []).append(_measured(sys.executable, _POOL))
        found.setdefault("adaptor.Executor", []).append(_ours())
        if peers:
            for name, code in _PEERS.items():
                found.setdefault(name, []).append(_measured(peers, code))
    ours = found["adaptor.Executor"]
    for name, times in found.items():
        calls = statistics.median(each.calls for each in times)
        yield Row(
            f"{CALLS:,} calls of a function that does nothing: {name}",
            f"{CALLS / calls:,.0f}/s{_ratio('calls', ours, times)}",
            f"≥ {TIMES} × Parsl and Dask" if times is ours else "",
        )
    for name, times in found.items():
        each = statistics.median(each.short for each in times) * SLOTS / SHORT
        more = 1000 * each - 10
        yield Row(
            f"{SHORT:,} calls of 10 ms: {name}", f"{more:.2f} ms more each", "≤ 5 ms" if times is ours else ""
        )
    for name, times in found.items():
        alone = 1000 * statistics.median(each.alone for each in times)
        yield Row(f"one call after the other: {name}", f"{alone:.1f} ms", "≤ 3 ms" if times is ours else "")
    for name, times in found.items():
        large = statistics.median(each.large for each in times)
        yield Row(
            f"{LARGE:,} results of 1 MB: {name}",
            f"{LARGE / large:,.0f} MB/s{_ratio('large', ours, times)}",
        )


def _ratio(what: str, ours: list[Times], times: list[Times]) -> str:
    """Speed of ours as a multiple of theirs, round by round."""
    if times is ours:
        return ""
    pairs = zip(ours, times, strict=True)
    ratio = statistics.median(getattr(theirs, what) / getattr(own, what) for own, theirs in pairs)
    return f"; ours: {ratio:.2f} ×"


def _ours() -> Times:
    with private_daemon(SLOTS) as place:
        return _measured(sys.executable, _OURS, place.environment)


def peer_seconds(python: str, name: str, count: int) -> float:
    """So many times /bin/true by a peer that runs already."""
    return float(_last_line(python, _PEERS[name] + _TRUE, [count]))


def _measured(python: str, executor: str, environment: dict[str, str] | None = None) -> Times:
    last = _last_line(python, executor + _MEASURE, (CALLS, SHORT, LARGE, ALONE), environment)
    return msgspec.json.decode(last, type=Times)


def _last_line(
    python: str, code: str, numbers: Sequence[int], environment: dict[str, str] | None = None
) -> bytes:
    """Last line that a program prints."""
    with tempfile.TemporaryDirectory(prefix="adaptor-bench-") as folder:
        program = Path(folder) / "program.py"
        program.write_text(code)
        path = f"{Path(python).parent}:{os.environ['PATH']}"  # where Parsl finds its own programs
        done = subprocess.run(
            [python, str(program), *map(str, numbers)],
            cwd=folder,
            env={**(environment or os.environ), "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT,
            check=True,
        )
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    show("Executors on two slots", rows(sys.argv[1] if len(sys.argv) > 1 else None))
