"""HyperQueue on the same tasks: by the package of an environment, `hq` on the PATH, or a package here."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.stopwatch import seconds

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
