"""`python -m bench.throughput [PEERS]`: 5,000 × /bin/true on two slots: a whole `adaptor run` beside others.

`xargs` and HyperQueue; Parsl and Dask.distributed too where PEERS is the interpreter of an environment with
all three.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.executors import peer_seconds
from bench.private_daemon import PrivateDaemon, private_daemon, private_folder
from bench.stopwatch import seconds
from bench.table import Row, show

_READY_TIMEOUT = 30.0
_PYTHON = """
import sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

tasks, slots = int(sys.argv[1]), int(sys.argv[2])
with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=slots))
    client = cluster.client()
    job = Job()
    for _ in range(tasks):
        job.program(["/bin/true"])
    begin = time.perf_counter()
    client.wait_for_jobs([client.submit(job)])
    print(time.perf_counter() - begin)
"""


def hyperqueue_seconds(tasks: int, slots: int, python: str | None = None) -> float | None:
    """From the submission to the last end, its server and worker already running; None: not installed.

    `python`: of an environment that has the package.
    """
    if python is not None:
        return _by_package(tasks, slots, python)
    hq = shutil.which("hq")
    if hq is not None:
        return _by_command(hq, tasks, slots)
    if importlib.util.find_spec("hyperqueue") is not None:
        return _by_package(tasks, slots, sys.executable)
    return None


def _by_package(tasks: int, slots: int, python: str) -> float:
    command = [python, "-c", _PYTHON, str(tasks), str(slots)]
    with tempfile.TemporaryDirectory(prefix="hq-bench-") as folder:  # it writes two files per task
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
    return float(done.stdout.split()[-1])


def _by_command(hq: str, tasks: int, slots: int) -> float:
    with tempfile.TemporaryDirectory(prefix="hq-bench-") as folder:
        environment = {**os.environ, "HQ_SERVER_DIR": folder}

        def start(*arguments: str) -> subprocess.Popen[bytes]:
            null = subprocess.DEVNULL
            return subprocess.Popen([hq, *arguments], env=environment, stdout=null, stderr=null)

        def run(*arguments: str) -> bytes:
            return subprocess.run([hq, *arguments], env=environment, capture_output=True, check=True).stdout

        server = start("server", "start")
        try:
            path = Path(folder, "hq-current")
            give_up = time.monotonic() + _READY_TIMEOUT
            while not path.exists():
                if time.monotonic() > give_up:
                    raise TimeoutError(f"{path}: the HyperQueue server did not start")
                time.sleep(0.05)
            worker = start("worker", "start", f"--cpus={slots}")
            run("worker", "wait", "1")
            job = ("--array", f"1-{tasks}", "--stdout=none", "--stderr=none", "--wait", "/bin/true")
            took = seconds(lambda: run("submit", *job))
            run("server", "stop")
            worker.wait(_READY_TIMEOUT)
            return took
        finally:
            server.kill()
            server.wait()


TASKS = 5_000
SLOTS = 2
ROUNDS = 3
FEWER = 1_000
"""Tasks where a program takes long for each."""


def rows(peers: str | None = None) -> Iterator[Row]:
    """All in turn, for the machine is busier at one time than at another: medians over rounds."""
    rounds = [
        Round(seconds(_xargs), _run_seconds(), _submit_seconds(), hyperqueue_seconds(TASKS, SLOTS, peers))
        for _ in range(ROUNDS)
    ]
    xargs = statistics.median(each.xargs for each in rounds)
    yield Row(f"xargs -P{SLOTS} -n1 /bin/true, {TASKS:,} times, median of {ROUNDS}", _rate(xargs))
    yield _beside_xargs("adaptor run, start of the daemon included", "run", rounds, "≥ 0.80")
    yield _beside_xargs("adaptor submit and wait, its daemon runs already", "submit", rounds)
    if any(each.hyperqueue is None for each in rounds):
        yield Row("HyperQueue", "not installed")
    else:
        yield _beside_xargs("HyperQueue, its server and worker run already", "hyperqueue", rounds)
        for name, what in (("run", "adaptor run"), ("submit", "adaptor submit and wait")):
            target = "≥ 2.00" if name == "submit" else ""
            yield Row(
                f"{what}, beside that", f"{_ratio(rounds, 'hyperqueue', name):.2f} × HyperQueue", target
            )
    for name in ("Parsl, HTEX", "Dask.distributed") if peers else ():
        took = peer_seconds(peers or "", name, FEWER) * TASKS / FEWER
        yield Row(f"{name}, {FEWER:,} times `subprocess.run`", f"{_rate(took)} = {xargs / took:.2f} × xargs")


class Round(msgspec.Struct, frozen=True):
    """Seconds that each took, one right after the other."""

    xargs: float
    run: float
    submit: float
    hyperqueue: float | None


def _ratio(rounds: Sequence[Round], slow: str, fast: str) -> float:
    return statistics.median(getattr(each, slow) / getattr(each, fast) for each in rounds)


def _beside_xargs(what: str, name: str, rounds: Sequence[Round], target: str = "") -> Row:
    took = statistics.median(getattr(each, name) for each in rounds)
    return Row(what, f"{_rate(took)} = {_ratio(rounds, 'xargs', name):.2f} × xargs", target)


def _rate(took: float) -> str:
    return f"{TASKS / took:,.0f}/s"


def _xargs() -> None:
    numbers = "\n".join(map(str, range(TASKS))).encode()
    # `true` does not mind the number that `-n1` hands to it.
    subprocess.run(["xargs", f"-P{SLOTS}", "-n1", "/bin/true"], input=numbers, check=True)


def _run_seconds() -> float:
    with private_folder(SLOTS) as place:
        bag = _bag_file(place)
        return seconds(lambda: place.adaptor("run", bag))


def _submit_seconds() -> float:
    """From the submission to the last end. No worker runs at its beginning."""
    with private_daemon(SLOTS) as place:
        bag = _bag_file(place)

        def submit_and_wait() -> None:
            place.adaptor("submit", bag)
            place.adaptor("watch", "--quiet", "last")

        return seconds(submit_and_wait)


def _bag_file(place: PrivateDaemon) -> str:
    bag = place.folder / "true.jsonl"
    bag.write_text(f"{json.dumps({'argv': ['/bin/true']})}\n" * TASKS)
    return str(bag)


if __name__ == "__main__":
    show("Many short tasks", rows(sys.argv[1] if len(sys.argv) > 1 else None))
