"""Access files: private from their first byte, written in one step, refused when open to others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.private_files import write_private
from adaptor.protocol.access import Access, AccessError, Credentials, read_access, write_access

ACCESS = Access(
    addresses=("tcp://login1:4711", "tcp://10.0.0.1:4711"),
    server="s" * 40,
    own=Credentials("p" * 40, "SECRET" * 6 + "SECR"),
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
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    with pytest.raises(AccessError, match="must belong to you alone"):
        read_access(path)


def test_a_missing_file_and_a_folder_are_named(path: Path) -> None:
    with pytest.raises(AccessError, match=r"access-worker\.json: cannot be read: No such file"):
        read_access(path)
    path.mkdir()
    with pytest.raises(AccessError, match="it is no plain file"):
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
