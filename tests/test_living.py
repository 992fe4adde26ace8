"""Looks at processes that end meanwhile answer, and raise nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psutil
import pytest

from tests.living import hold, is_alive, names_below, oldest_child, read_pids


def test_a_process_is_alive_until_it_has_ended_reaped_or_not() -> None:
    child = subprocess.Popen(["sleep", "1000"])
    looked_at = psutil.Process(child.pid)
    assert is_alive(looked_at)
    assert is_alive(child.pid)
    child.kill()
    looked_at.wait()
    assert not is_alive(looked_at)
    child.wait()
    assert not is_alive(looked_at)
    assert not is_alive(child.pid)


def test_a_child_that_ends_during_the_look_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    children = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
    seen = [psutil.Process(child.pid) for child in children]
    top = psutil.Process()
    monkeypatch.setattr(psutil.Process, "children", lambda *_args, **_kwargs: seen)
    try:
        assert oldest_child(top) == seen[0]
        children[0].kill()
        children[0].wait()
        assert oldest_child(top) == seen[1]
        assert names_below(top) == ["sleep"]
    finally:
        for child in children:
            child.kill()
            child.wait()
    assert oldest_child(top) is None
    assert names_below(top) == []


def test_a_process_that_is_held_stands_still() -> None:
    child = subprocess.Popen(["sleep", "1000"])
    try:
        hold(psutil.Process(child.pid))
        assert psutil.Process(child.pid).status() == psutil.STATUS_STOPPED
    finally:
        child.kill()
        child.wait()


def test_numbers_are_read_when_their_lines_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    with pytest.raises(AssertionError, match="does not name 1 processes"):
        read_pids(path, 1, seconds=0)
    path.write_text("12\n3")
    assert read_pids(path, 1) == [12]
    with pytest.raises(AssertionError, match="does not name 2 processes"):
        read_pids(path, 2, seconds=0)
    path.write_text("12\n34\n")
    assert read_pids(path, 2) == [12, 34]
