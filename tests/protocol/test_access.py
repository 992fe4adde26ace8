"""Access files: private from their first byte, written in one step, refused when open to others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.access import Access, AccessError, read_access, write_access, write_private

ACCESS = Access(
    addresses=("tcp://login1:4711", "tcp://10.0.0.1:4711"),
    server_key="s" * 40,
    public_key="p" * 40,
    secret_key="SECRET" * 6 + "SECR",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "access-worker.json"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_can_be_read(path: Path) -> None:
    write_access(path, ACCESS)
    assert read_access(path) == ACCESS


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_file_is_private_under_any_umask(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_access(path, ACCESS)
    finally:
        os.umask(before)
    assert mode(path) == 0o600


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

    def watched(file: Path, *rest: int) -> int:
        used.append(Path(file))
        return real_open(file, *rest)

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


@pytest.mark.parametrize("extra", [0o040, 0o004, 0o020, 0o002, 0o010, 0o001])
def test_a_file_open_to_others_is_refused(path: Path, extra: int) -> None:
    write_access(path, ACCESS)
    path.chmod(0o600 | extra)
    with pytest.raises(AccessError, match="must belong to you alone"):
        read_access(path)


def test_a_symlink_to_an_open_file_is_refused(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    write_access(target, ACCESS)
    path.symlink_to(target)
    assert read_access(path) == ACCESS
    target.chmod(0o640)
    with pytest.raises(AccessError, match="must belong to you alone"):
        read_access(path)


def test_somebody_elses_file_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_access(path, ACCESS)
    stranger = path.stat().st_uid + 1
    monkeypatch.setattr(os, "getuid", lambda: stranger)
    with pytest.raises(AccessError, match="must belong to you alone"):
        read_access(path)


def test_a_missing_file_and_a_folder_are_named(path: Path) -> None:
    with pytest.raises(AccessError, match=r"access-worker\.json: cannot be read: No such file"):
        read_access(path)
    path.mkdir()
    with pytest.raises(AccessError, match="cannot be read: Is a directory"):
        read_access(path)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'{"addresses": []}', b'{"addresses": ["\xff\xfe"]}', b"\x00" * 50],
)
def test_a_damaged_file_is_named(path: Path, data: bytes) -> None:
    write_private(path, data)
    with pytest.raises(AccessError, match=r"access-worker\.json: damaged"):
        read_access(path)


@given(place=st.integers(0, 10_000), length=st.integers(0, 10_000))
def test_no_error_shows_the_secret(tmp_path_factory: pytest.TempPathFactory, place: int, length: int) -> None:
    path = tmp_path_factory.mktemp("access") / "access.json"
    whole = msgspec.json.encode(ACCESS)
    place, length = place % len(whole), length % len(whole)
    write_private(path, whole[:place] + b"\xff" + whole[place + 1 : length])
    with pytest.raises(AccessError) as caught:
        read_access(path)
    assert "SECRET" not in str(caught.value)
