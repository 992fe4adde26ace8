"""Processes are found by their marker and their ancestors, and nobody else is hit."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.processes.identity import start_ticks
from adaptor.processes.leftovers import (
    MARKER,
    Process,
    end_leftovers,
    find,
    process_of,
    send,
    wait_for_death,
)

_FAMILY = "env -i sh -c 'echo $$; sleep 1000 & echo $!; wait' & echo $!; wait"
"""Its descendants do not carry the marker."""


@pytest.fixture
def sign(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path)
    end_leftovers(str(tmp_path))


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
    assert end_leftovers(sign, until=time.monotonic() + 20) == len(members)
    assert top.wait(10) == -signal.SIGKILL
    assert find(sign) == []


def test_what_is_below_a_root_is_found_without_a_marker(sign: str) -> None:
    top, members = family(sign)
    assert {process.pid for process in find("", [top.pid])} == members
    assert members <= {process.pid for process in find("", [os.getpid()])}
    assert os.getpid() not in {process.pid for process in find("", [os.getpid()])}
    end_leftovers("", [top.pid], until=time.monotonic() + 20)
    assert top.wait(10) == -signal.SIGKILL


def test_no_marker_marks_nobody() -> None:
    nobody = subprocess.Popen(["sleep", "1000"], env={MARKER: ""})
    try:
        assert find("") == []
        assert end_leftovers("") == 0
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
        send(Process(sleeper.pid, 0, ticks - 1), signal.SIGKILL)  # it had the number before
        send(Process(2**22 + 1, 0, 1), signal.SIGKILL)
        assert sleeper.poll() is None
        send(Process(sleeper.pid, 0, ticks), signal.SIGTERM)
        assert sleeper.wait(10) == -signal.SIGTERM
    finally:
        sleeper.kill()


def test_a_zombie_is_dead() -> None:
    ended = subprocess.Popen(["true"])
    meant = Process(ended.pid, 0, 0)
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert process_of(ended.pid) is None
    assert wait_for_death([meant], time.monotonic())
    ended.wait()


def test_waiting_for_a_death_has_an_end() -> None:
    own = process_of(os.getpid())
    assert own is not None
    assert not wait_for_death([own], time.monotonic())
