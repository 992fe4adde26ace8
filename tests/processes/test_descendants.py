"""Process trees: what was started below a process is found and ended, whatever session it fled to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from adaptor.processes import descendants as processes

DEADLINE = 20.0

FAMILY = """
import os, signal, subprocess, sys, time
from adaptor.processes import descendants as processes
processes.become_subreaper()
subprocess.Popen([sys.executable, "-c", '''
import os, sys, time, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "a").write(f"{os.getpid()}\\\\n")
        time.sleep(300)
    os._exit(0)
open(sys.argv[1], "a").write(f"{os.getpid()}\\\\n")
time.sleep(300)
''', sys.argv[1]], start_new_session=True)
while len(open(sys.argv[1]).read().splitlines()) < 2:
    time.sleep(0.01)
while True:  # until the daemonised one has been handed to us
    if len(processes.child_pids()) >= 2 and all(processes.child_pids()):
        break
    time.sleep(0.01)
print("term", processes.kill_descendants(signal.SIGTERM), flush=True)
print("kill", processes.kill_descendants(signal.SIGKILL), flush=True)
print("left", len(processes.descendants()), flush=True)
"""


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.01)


def lives(pid: int) -> bool:
    """A zombie does not: whoever it was handed to has not waited for it yet."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_descendants_that_ignore_sigterm_and_fled_their_session_are_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.touch()
    done = subprocess.run(
        [sys.executable, "-c", FAMILY, str(pids)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["term 2", "kill 2", "left 0"]
    for pid in map(int, pids.read_text().split()):
        assert not lives(pid)


def test_killing_without_descendants_signals_nobody() -> None:
    code = "from adaptor.processes import descendants; print(descendants.kill_descendants(9))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "0\n"


def test_children_are_listed_with_the_zombies() -> None:
    child = subprocess.Popen(["/bin/true"])
    try:
        until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
        assert child.pid in processes.child_pids()
        assert child.pid not in [process.pid for process in processes.descendants()]
    finally:
        child.wait()
    assert child.pid not in processes.child_pids()


def test_trees_are_told_apart_by_session_and_by_parents() -> None:
    line = "setsid sleep 300 & sleep 300 & wait"
    tops = [subprocess.Popen(["/bin/sh", "-c", line], start_new_session=True) for _ in range(2)]
    try:

        def names() -> list[list[str]]:
            trees = processes.descendants_by_top({top.pid for top in tops})
            return [sorted(process.name() for process in trees[top.pid]) for top in tops]

        until(lambda: names() == [["sh", "sleep", "sleep"]] * 2)
        fled = [p for p in psutil.Process(tops[0].pid).children() if os.getsid(p.pid) == p.pid]
        assert len(fled) == 1
    finally:
        processes.kill_descendants(signal.SIGKILL)
        for top in tops:
            top.wait()


def test_variables_of_a_process() -> None:
    variables = {"MARK": "1=2", "EMPTY": ""}
    child = subprocess.Popen(["/bin/sleep", "300"], env=variables)
    try:
        until(lambda: processes.variables_of(child.pid) == variables)  # it may be in its exec
        assert processes.variables_of(child.pid).get("MARK") == "1=2"
        assert processes.variables_of(child.pid).get("MAR") is None
    finally:
        child.kill()
        child.wait()
    assert processes.variables_of(child.pid) == {}
