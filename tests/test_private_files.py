"""Files written in one step: private, whole or not at all, whatever lies in the way."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.private_files import write_atomically, write_private


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "access-worker.json"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_that_was_open_becomes_private(path: Path) -> None:
    path.write_bytes(b"old")
    path.chmod(0o666)
    write_private(path, b"new")
    assert mode(path) == 0o600
    assert path.read_bytes() == b"new"


def test_a_reader_keeps_the_old_content_whole(path: Path) -> None:
    write_private(path, b"old" * 1000)
    with path.open("rb") as reader:
        write_private(path, b"new")
        assert reader.read() == b"old" * 1000
    assert path.read_bytes() == b"new"


def test_writing_through_a_symlink_leaves_its_target_alone(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    path.symlink_to(target)
    write_private(path, b"secret")
    assert target.read_bytes() == b"mine"
    assert not path.is_symlink()
    assert mode(path) == 0o600


@pytest.mark.parametrize("kind", ["open file", "symlink"])
def test_what_lies_in_the_way_of_the_temporary_file_never_gets_the_secret(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A later process may have the number of one that died in the middle of a write."""
    used: list[Path] = []
    real_open = os.open

    def watched(file: Path, *rest: int, **more: int | None) -> int:
        used.append(Path(file))
        return real_open(file, *rest, **more)

    monkeypatch.setattr(os, "open", watched)
    write_private(path, b"first")
    monkeypatch.undo()
    other = tmp_path / "other"
    other.write_bytes(b"")
    other.chmod(0o644)
    for temporary in used:
        if kind == "symlink":
            temporary.symlink_to(other)
        else:
            temporary.hardlink_to(other)
    write_private(path, b"secret")
    assert used
    assert other.read_bytes() == b""
    assert path.read_bytes() == b"secret"
    assert mode(path) == 0o600


def test_a_failed_write_keeps_the_old_and_leaves_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_private(path, b"old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


@given(mode_wanted=st.sampled_from([0o600, 0o644, None]), umask=st.sampled_from([0o000, 0o022, 0o077]))
def test_the_mode_is_what_is_asked_for_or_what_the_umask_leaves(
    tmp_path_factory: pytest.TempPathFactory, mode_wanted: int | None, umask: int
) -> None:
    path = tmp_path_factory.mktemp("files") / "file"
    before = os.umask(umask)
    try:
        write_atomically(path, b"x", temporary=path.with_name(".file"), mode=mode_wanted)
    finally:
        os.umask(before)
    assert mode(path) == (0o666 & ~umask if mode_wanted is None else mode_wanted)
    assert list(path.parent.iterdir()) == [path]
