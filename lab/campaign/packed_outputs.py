"""Outputs that are packed, while workers are killed: no byte of a result may be lost.

    python -m lab.campaign.packed_outputs --tasks 2000 --kills 10

Each task prints its number a random number of times, to both streams. Workers are killed (`kill -9`) at
random moments; in the end the output of every task's result must be whole, and the files few.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.e2e.lab import Lab

CONFIG = """
sites:
  here:
    backend: local
    processors: 4
    limits: {max_pending_requests: 2, max_proc: 2, max_tr: 1h}
    initial_tr: 1s
    pad: 5s
    idle_timeout: 3s
"""


def main() -> int:
    """0; 1 where an output is not what its task has printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="packed-") as folder:
        lab = Lab(Path(folder))
        try:
            return _run(lab, given.tasks, given.kills, random.Random(given.seed))
        finally:
            lab.close()


def _run(lab: Lab, tasks: int, kills: int, luck: random.Random) -> int:
    lab.configure(CONFIG)
    times = [luck.randrange(1, 40) for _ in range(tasks)]
    lab.bag(
        f"for i in $(seq {count}); do echo {task}; echo e{task} >&2; done; sleep 0.0{luck.randrange(1, 9)}"
        for task, count in enumerate(times)
    )
    lab.submit("tasks.bag", "--output-files", "packed", "--max-lost", "0")
    for _ in range(kills):
        time.sleep(luck.uniform(0.5, 3.0))
        workers = _workers(lab)
        if workers:
            luck.choice(workers).send_signal(signal.SIGKILL)
    lab.wait(timeout=1200)
    wrong = sum(
        lab.run("results", "1", "--task", str(task), stream).stdout != text * count
        for task, count in luck.sample(list(enumerate(times)), min(tasks, 20))
        for stream, text in (("--stdout", f"{task}\n"), ("--stderr", f"e{task}\n"))
    )
    for stream, mark in (("--stdout", ""), ("--stderr", "e")):
        told = lab.run("results", "1", stream).stdout
        expected = "".join(
            f"==> task {task} <==\n" + f"{mark}{task}\n" * count for task, count in enumerate(times)
        )
        wrong += told != expected
    files = sum(1 for _ in (lab.work / "adaptor-1").iterdir())
    attempts = sum(task["attempts"] for task in lab.results())
    print(f"{tasks} tasks, {attempts} attempts, {kills} kills: {wrong} outputs wrong, {files} files")
    return 1 if wrong else 0


def _workers(lab: Lab) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        words = process.info["cmdline"] or []
        if "adaptor.worker" in words and str(lab.state) in str(process.info["environ"]):
            found.append(process)
    return found


if __name__ == "__main__":
    sys.exit(main())
