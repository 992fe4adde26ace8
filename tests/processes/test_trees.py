"""Process trees are found by marker and by ancestors and ended whole, and no other process is hit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from adaptor.processes.environment import MARKER, variables_of
from adaptor.processes.identity import Process, process_of, start_ticks
from adaptor.processes.trees import (
    child_pids,
    descendants,
    end_trees,
    find,
    send,
    trees_of,
    wait_for_death,
)
from tests.living import PATIENCE, is_alive

_FAMILY = "env -i sh -c 'echo $$; sleep 1000 & echo $!; wait' & echo $!; wait"
"""Its descendants do not carry the marker."""


@pytest.fixture
def sign(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path)
    end_trees(str(tmp_path))


def family(sign: str) -> tuple[subprocess.Popen[str], set[int]]:
    top = subprocess.Popen(
        ["/bin/sh", "-c", _FAMILY], env={**os.environ, MARKER: sign}, stdout=subprocess.PIPE, text=True
    )
    assert top.stdout is not None
    return top, {top.pid, *(int(top.stdout.readline()) for _ in range(3))}


def test_a_marked_process_is_found_with_all_below_it(sign: str) -> None:
    top, members = family(sign)
    assert {process.pid for process in find(sign)} == members
    assert find(f"{sign}/other") == []
    assert end_trees(sign, until=time.monotonic() + PATIENCE) == len(members)
    assert top.wait(PATIENCE) == -signal.SIGKILL
    assert find(sign) == []


def test_what_fled_mark_and_parents_is_found_by_the_session_that_a_marked_process_began(sign: str) -> None:
    line = "(env -i sleep 1000 >&2 & echo $!); wait; exec sleep 1000"
    top = subprocess.Popen(
        ["/bin/sh", "-c", line],
        env={**os.environ, MARKER: sign},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert top.stdout is not None
    members = {top.pid, int(top.stdout.readline())}
    until(lambda: {process.pid for process in find(sign)} == members)
    end_trees(sign, until=time.monotonic() + PATIENCE)
    top.wait(PATIENCE)


def test_others_of_the_session_in_which_a_marked_process_was_started_are_not_found(sign: str) -> None:
    """Such as the shell of a user."""
    line = f'sleep 1000 >&2 & {MARKER}="$1" sleep 1000 >&2 & echo $!; wait'
    shell = subprocess.Popen(
        ["/bin/sh", "-c", line, "sh", sign], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert shell.stdout is not None
        marked = int(shell.stdout.readline())
        until(lambda: [process.pid for process in find(sign)] == [marked])
    finally:
        end_trees("", [shell.pid])
        shell.kill()
        shell.wait(PATIENCE)


def test_what_is_below_a_root_is_found_without_a_marker(sign: str) -> None:
    top, members = family(sign)
    assert {process.pid for process in find("", [top.pid])} == members
    assert members <= {process.pid for process in find("", [os.getpid()])}
    assert os.getpid() not in {process.pid for process in find("", [os.getpid()])}
    end_trees("", [top.pid], until=time.monotonic() + PATIENCE)
    assert top.wait(PATIENCE) == -signal.SIGKILL


def test_no_marker_marks_nobody() -> None:
    nobody = subprocess.Popen(["sleep", "1000"], env={MARKER: ""})
    try:
        assert find("") == []
        assert end_trees("") == 0
        assert nobody.poll() is None
    finally:
        nobody.kill()
        nobody.wait()


@pytest.mark.parametrize("handles", [True, False], ids=["pidfd", "old kernel"])
def test_only_the_process_that_is_meant_is_signalled(handles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not handles:
        monkeypatch.delattr(os, "pidfd_open")
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        ticks = start_ticks(sleeper.pid)
        assert ticks is not None
        send(Process(sleeper.pid, 0, 0, ticks - 1), signal.SIGKILL)  # it had the number before
        send(Process(2**22 + 1, 0, 0, 1), signal.SIGKILL)
        assert sleeper.poll() is None
        send(Process(sleeper.pid, 0, 0, ticks), signal.SIGTERM)
        assert sleeper.wait(PATIENCE) == -signal.SIGTERM
    finally:
        sleeper.kill()


def test_a_zombie_is_dead() -> None:
    ended = subprocess.Popen(["true"])
    meant = Process(ended.pid, 0, 0, 0)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert process_of(ended.pid) is None
    assert wait_for_death([meant], time.monotonic())
    ended.wait()


def test_waiting_for_a_death_has_an_end() -> None:
    own = process_of(os.getpid())
    assert own is not None
    assert not wait_for_death([own], time.monotonic())


ESCAPEES = """
import os, signal, subprocess, sys, time
from adaptor.processes import trees
trees.become_subreaper()
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
while len(trees.child_pids()) < 2:  # until the daemonised one has been handed to us
    time.sleep(0.01)
print("term", trees.send_to_descendants(signal.SIGTERM), flush=True)
trees.end_descendants()
print("left", len(trees.descendants()), flush=True)
"""
"""One process ignores SIGTERM in a session of its own; another one has fled by a double fork."""

BOMB = """
import os, sys, time
from adaptor.processes import trees
trees.become_subreaper()
if os.fork() == 0:
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        os.setsid() if os.getpid() != os.getsid(0) else None
        if os.fork():
            os._exit(0)
    os._exit(0)
time.sleep(0.2)
trees.end_descendants()
children = trees.child_pids()
time.sleep(0.05)
print("born after the end", len(set(trees.child_pids()) - set(children)), flush=True)
"""
"""Its only process flees from itself: each generation leads a session of its own and ends at once."""


def output_of(code: str, *arguments: str) -> list[str]:
    words = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return done.stdout.splitlines()


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.01)


def test_descendants_that_ignore_sigterm_or_fled_their_session_are_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.touch()
    assert output_of(ESCAPEES, str(pids)) == ["term 2", "left 0"]
    assert not any(process_of(int(pid)) for pid in pids.read_text().split())


def test_a_chain_of_forks_in_ever_new_sessions_is_ended() -> None:
    assert output_of(BOMB) == ["born after the end 0"]


def test_without_descendants_nothing_is_signalled() -> None:
    code = "from adaptor.processes import trees; trees.end_descendants(); print(trees.send_to_descendants(9))"
    assert output_of(code) == ["0"]


def test_children_are_listed_with_the_zombies() -> None:
    child = subprocess.Popen(["/bin/true"])
    try:
        until(lambda: process_of(child.pid) is None)
        assert child.pid in child_pids()
        assert child.pid not in [process.pid for process in descendants()]
    finally:
        child.wait()
    assert child.pid not in child_pids()


def test_trees_are_separated_by_session_and_by_parents() -> None:
    line = "setsid sleep 300 & sleep 300 & wait"
    tops = [subprocess.Popen(["/bin/sh", "-c", line], start_new_session=True) for _ in range(2)]
    try:

        def names() -> list[list[str]]:
            trees = trees_of({top.pid for top in tops})
            return [sorted(psutil.Process(each.pid).name() for each in trees[top.pid]) for top in tops]

        until(lambda: names() == [["sh", "sleep", "sleep"]] * 2)
        fled = [p for p in psutil.Process(tops[0].pid).children() if os.getsid(p.pid) == p.pid]
        assert len(fled) == 1
    finally:
        end_trees("", [top.pid for top in tops])
        for top in tops:
            top.wait()


def living_below() -> dict[int, int]:
    """Parents of all processes below this one, without zombies, by psutil."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if is_alive(process):
                found[process.pid] = process.ppid()
    return found


def test_the_same_processes_are_found_as_by_psutil(sign: str) -> None:
    top, members = family(sign)
    try:
        # What earlier tests left may end between the two looks.
        until(lambda: {process.pid: process.parent for process in descendants()} == living_below())
        assert members <= living_below().keys()
    finally:
        end_trees(sign)
        top.wait()


def test_variables_of_a_process() -> None:
    variables = {"MARK": "1=2", "EMPTY": ""}
    child = subprocess.Popen(["/bin/sleep", "300"], env=variables)
    try:
        until(lambda: variables_of(child.pid) == variables)  # it may be in its exec
    finally:
        child.kill()
        child.wait()
    assert variables_of(child.pid) == {}
