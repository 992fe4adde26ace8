"""Whose environment cannot be read may be marked, for as long as it lives."""

from __future__ import annotations

import subprocess

import pytest

from adaptor.processes import environment
from adaptor.processes.identity import process_of


def test_a_process_that_gets_another_parent_between_two_looks_stays_in_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child = subprocess.Popen(["sleep", "300"])
    try:
        now = process_of(child.pid)
        assert now is not None
        before = now._replace(parent=now.parent + 1)
        monkeypatch.setattr(environment, "all_processes", lambda: iter([before]))
        monkeypatch.setattr(environment, "_environment", lambda _: None)
        assert environment.unknown_processes(0) == [before]
    finally:
        child.kill()
        child.wait()
    assert environment.unknown_processes(0) == []
