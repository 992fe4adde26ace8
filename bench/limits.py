"""`python -m bench.limits`: the daemon under hard limits: a million tasks, 500 pilots, many results a minute.

The daemon has one core, 256 descriptors as its soft limit (it may raise it to `DESCRIPTORS`), and MEMORY
bytes of data that it may ask the system for. Its pilots are those of `bench.standin_backend`, their workers
those of `bench.swarm`: connections of their own with the real protocol, tasks that are not run. Beside the
time of each phase stands what was resident at most in it (VmHWM, which is set back before).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import psutil

from adaptor.processes.commands import raise_limit
from adaptor.protocol.access import read_access
from bench.private_daemon import PrivateDaemon, private_place
from bench.table import Row, show

MEMORY = 256 * 2**20
_SLOTS = 4
_TASK = 0.7
"""Seconds that a task seems to take."""
_CONFIG = """
sites:
  standin:
    backend: standin
    processors: {processors}
    limits: {{max_pending_requests: {pilots}, max_proc: {slots}, max_tr: 1h}}
    max_submissions: {pilots}
    heuristic: static
    initial_tr: 30m
    pad: 10s
    idle_timeout: 10m
"""
_METADATA = "Metadata-Version: 2.1\nName: adaptor-standin\nVersion: 1.0\n"
_ENTRY_POINTS = "[adaptor.backends]\nstandin = bench.standin_backend:TYPE\n"
_LONGEST = 600.0


class Phase:
    """Resources that the daemon needs while the block runs."""

    def __init__(self, place: PrivateDaemon) -> None:
        self.took = self.longest = 0.0
        """Seconds of the block, and of the longest `adaptor status` meanwhile."""
        self.peak = 0
        """Bytes."""
        self._place, self._pid = place, place.pid()
        self._over = threading.Event()
        self._asking = threading.Thread(target=self._ask)

    def __enter__(self) -> Phase:
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")
        self._began = time.monotonic()
        self._asking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.took = time.monotonic() - self._began
        self.peak = _peak(self._pid)
        self._over.set()
        self._asking.join()

    def _ask(self) -> None:
        while not self._over.wait(1.0):
            began = time.monotonic()
            with contextlib.suppress(subprocess.CalledProcessError):  # the time that it took says it
                self._place.adaptor("status", "--json")
            self.longest = max(self.longest, time.monotonic() - began)

    def row(self, what: str, limit: int) -> Row:
        status = f"; status {self.longest:.1f} s at most" if self.longest else ""
        return Row(what, f"{self.took:.1f} s, {_megabytes(self.peak)}{status}", f"≤ {_megabytes(limit)}")


def rows(
    tasks: int, pilots: int, descriptors: int, seconds: float, memory: int, silent: int
) -> Iterator[Row]:
    text = _CONFIG.format(processors=pilots * _SLOTS, pilots=pilots, slots=_SLOTS)
    with private_place(text) as place:
        _register(place)
        start = partial(_start, place, descriptors, memory)
        start()
        daemon = psutil.Process(place.pid())
        yield Row("descriptors that the daemon may have", f"{daemon.rlimit(psutil.RLIMIT_NOFILE)[0]:,}")
        yield Row("resident with nothing to do", _megabytes(daemon.memory_info().rss))
        bag = place.folder / "many.bag"
        bag.write_text("".join(f"true {number}\n" for number in range(tasks)))
        with Phase(place) as phase:
            place.adaptor("submit", "--no-env", str(bag))
        yield phase.row(f"adaptor submit, {tasks:,} different tasks", memory)
        with Phase(place) as phase:
            place.adaptor("status", "1", "--json")
        yield phase.row("adaptor status", memory)
        with Phase(place) as phase:
            yield from _results(place, pilots, silent, seconds)
        yield phase.row("all that, with pilots and results", memory)
        with Phase(place) as phase:
            place.adaptor("results", "1", "--csv")
        yield phase.row("adaptor results --csv", memory)
        yield from _restarts(place, start, tasks, memory)
        for command in ("cancel", "retry"):
            with Phase(place) as phase:
                place.adaptor(command, "1")
            yield phase.row(f"adaptor {command}", memory)
        (view,) = json.loads(place.adaptor("status", "1", "--json"))["bags"]
        yield Row("tasks done, as the journal has it", f"{view['done']:,} (failed: {view['failed']})")


def _start(place: PrivateDaemon, descriptors: int, memory: int) -> float:
    """Start a daemon with these limits; the seconds that it took."""
    began = time.monotonic()
    limits = ["prlimit", f"--nofile=256:{descriptors}", f"--data={memory}", "taskset", "-c", "0"]
    started = subprocess.run(
        [*limits, sys.executable, "-m", "adaptor.cli", "daemon", "start"],
        env=place.environment,
        cwd=place.folder,
        check=False,
        capture_output=True,
        text=True,
    )
    if started.returncode:
        raise SystemExit(started.stderr)
    return time.monotonic() - began


def _restarts(place: PrivateDaemon, start: Callable[[], float], tasks: int, memory: int) -> Iterator[Row]:
    place.adaptor("daemon", "stop")
    took = start()
    peak = _megabytes(_peak(place.pid()))
    yield Row(f"start again, {tasks:,} tasks", f"{took:.1f} s, {peak}", f"≤ {_megabytes(memory)}")
    psutil.Process(place.pid()).kill()
    took = start()
    peak = _megabytes(_peak(place.pid()))
    yield Row("start again after kill -9", f"{took:.1f} s, {peak}", f"≤ {_megabytes(memory)}")


def _results(place: PrivateDaemon, pilots: int, silent: int, seconds: float) -> Iterator[Row]:
    daemon = psutil.Process(place.pid())
    found, took = _pilots(place, pilots)
    yield Row(f"{len(found)} pilots submitted and running", f"{took:.1f} s")
    with _silent_connections(place, silent):
        before = daemon.cpu_times()
        said = _swarm(place, found, seconds)
        after = daemon.cpu_times()
    busy = (after.user + after.system - before.user - before.system) / seconds
    yield Row("workers welcomed", f"{said['welcomed']:,} of {len(found):,}")
    yield Row(
        f"results acknowledged in {seconds:.0f} s",
        f"{said['results']:,} = {60 * said['results'] / seconds:,.0f} a minute",
        "≥ 100,000 a minute",
    )
    yield Row("… the daemon's share of its core meanwhile", f"{100 * busy:.0f} %")
    yield Row("descriptors open at the end", f"{daemon.num_fds():,}")


def _register(place: PrivateDaemon) -> None:
    metadata = place.folder / "adaptor_standin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(_METADATA)
    (metadata / "entry_points.txt").write_text(_ENTRY_POINTS)
    root = Path(__file__).parents[1]
    place.environment["PYTHONPATH"] = f"{place.folder}:{root}"


def _pilots(place: PrivateDaemon, wanted: int) -> tuple[list[int], float]:
    """The running pilots once there are as many as wanted, and the seconds that took."""
    begun = time.monotonic()
    while True:
        listed = json.loads(place.adaptor("status", "--pilots", "--json"))
        found = [int(pilot["id"]) for pilot in listed if pilot["state"] == "running"]
        took = time.monotonic() - begun
        if len(found) >= wanted or took > _LONGEST:
            return found, took
        time.sleep(0.5)


def _swarm(place: PrivateDaemon, pilots: list[int], seconds: float) -> dict[str, int]:
    """Figures that the workers report."""
    access = place.folder / "state" / "access-worker-standin.json"
    words = [sys.executable, "-m", "bench.swarm", str(access), str(seconds), str(_TASK), str(_SLOTS)]
    done = subprocess.run(
        [*words, *map(str, pilots)], env=place.environment, stdout=subprocess.PIPE, check=False
    )
    return msgspec.json.decode(done.stdout, type=dict[str, int])


@contextlib.contextmanager
def _silent_connections(place: PrivateDaemon, count: int) -> Iterator[None]:
    """Connections at the workers' port that prove nothing."""
    access = read_access(place.folder / "state" / "access-worker-standin.json")
    port = int(access.addresses[0].rpartition(":")[2])
    with contextlib.ExitStack() as made:
        for _ in range(count):
            made.enter_context(socket.create_connection(("127.0.0.1", port)))
        yield


def _peak(pid: int) -> int:
    """Bytes of a process that were resident at most (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("a kernel without VmHWM")


def _megabytes(count: int) -> str:
    return f"{count / 2**20:.0f} MB"


SHORTER = (1_000_000, 100, 4096, 15.0, MEMORY, 100)
"""Sizes that `make bench` measures: tasks, pilots, descriptors, seconds, bytes, silent connections."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.limits", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--pilots", type=int, default=500)
    parser.add_argument("--descriptors", type=int, default=4096, help="the hard limit")
    parser.add_argument("--seconds", type=float, default=60.0, help="for which workers report results")
    parser.add_argument("--memory", type=int, default=MEMORY, help="bytes (RLIMIT_DATA)")
    parser.add_argument("--silent", type=int, default=1_100, help="connections beside them that say nothing")
    given = parser.parse_args()
    raise_limit()
    show(
        "Hard limits",
        rows(given.tasks, given.pilots, given.descriptors, given.seconds, given.memory, given.silent),
    )


if __name__ == "__main__":
    main()
