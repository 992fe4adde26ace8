"""The folders of connections' sockets: each stays as long as its process, and no longer."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from backends.machines import connection
from backends.machines.connection import ControlFolder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(connection, "_PLACE", str(tmp_path))
    return tmp_path


def test_what_a_killed_process_left_is_swept_away_and_what_is_held_stays(place: Path) -> None:
    held, left = ControlFolder(), ControlFolder()
    os.close(left._held)  # as the kernel does
    new = ControlFolder()
    assert {path.name for path in place.iterdir()} == {each.socket.parent.name for each in (held, new)}
    held.remove()
    new.remove()
    assert list(place.iterdir()) == []


def test_a_folder_is_not_swept_away_while_it_is_being_made(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def late(handle: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        ControlFolder().remove()  # of another process
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    made = ControlFolder()
    assert made.socket.parent.is_dir()
    made.remove()
