"""`python -m bench.submitting [TASKS ...]`: one `adaptor submit`: processor time and memory of both sides.

Nothing of the bags begins meanwhile.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from bench.private_daemon import ADAPTOR, PrivateDaemon, private_daemon
from bench.table import Row, show

SIZES = (1, 1_000, 100_000, 1_000_000)
LINKED = 100_000
"""Tasks of a bag in which each runs after the one before it."""


def rows(sizes: Sequence[int]) -> Iterator[Row]:
    for size in sizes:
        yield _submitted(f"{size:,} tasks", "list", "".join(f"./run {n}\n" for n in range(size)))
    lines = (
        f'{{"command": "x", "after": [{n - 1}]}}\n' if n else '{"command": "x"}\n' for n in range(LINKED)
    )
    yield _submitted(f"{LINKED:,} tasks, one after the other", "jsonl", "".join(lines))


def _submitted(what: str, ending: str, text: str) -> Row:
    with private_daemon(2) as place:
        bag = place.folder / f"tasks.{ending}"
        bag.write_text(text)
        place.adaptor("submit", "--begin", "tomorrow", "--", "true")  # what is loaded for the first bag
        daemon = psutil.Process(place.pid())
        before, peak = _processor_time(daemon), _peak(daemon)
        took, usage = _timed(place, bag)
        used, grown = _processor_time(daemon) - before, _peak(daemon) - peak
        client = f"client {usage.ru_utime + usage.ru_stime:.2f} s of processor, {usage.ru_maxrss // 1024} MB"
        return Row(what, f"{took:.2f} s; {client}; daemon {used:.2f} s, + {grown} MB")


def _timed(place: PrivateDaemon, bag: Path) -> tuple[float, resource.struct_rusage]:
    """Seconds of the command, and what it used."""
    began = time.perf_counter()
    with subprocess.Popen(
        [ADAPTOR, "submit", "--begin", "tomorrow", "--output-files", "none", str(bag)],
        env=place.environment,
        cwd=place.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"submit: exit code {process.returncode}")
    return time.perf_counter() - began, usage


def _processor_time(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system)


def _peak(process: psutil.Process) -> int:
    """Peak memory in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    show("Submitting", rows([int(size) for size in sys.argv[1:]] or SIZES))
