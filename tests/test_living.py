"""Looks at processes that end meanwhile answer, and raise nothing."""

from __future__ import annotations

import subprocess

import psutil
import pytest

from tests.living import is_alive, names_below, oldest_child


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
        assert names_below(top) == {"sleep"}
    finally:
        for child in children:
            child.kill()
            child.wait()
    assert oldest_child(top) is None
    assert names_below(top) == set()
