"""Files on a shared file system: whole or not at all, and nothing that others may have put there."""

from __future__ import annotations

import errno
import os
import socket
import time
from pathlib import Path

import pytest

from adaptor.protocol.spool.files import NotOursError, names_in, read_file, remove_file, write_file
from adaptor.protocol.spool.layout import LARGEST


def test_a_file_is_private_and_can_be_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_file(path, b"one")
    write_file(path, b"two")
    assert read_file(path) == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert names_in(tmp_path) == ["a"]


def test_what_an_earlier_writer_left_half_done_is_not_in_the_way(tmp_path: Path) -> None:
    (tmp_path / ".a").write_bytes(b"half")
    write_file(tmp_path / "a", b"whole")
    assert read_file(tmp_path / "a") == b"whole"
    assert names_in(tmp_path) == ["a"]


def test_nothing_is_left_where_a_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path, target: Path) -> Path:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="quota"):
        write_file(tmp_path / "a", b"data")
    assert names_in(tmp_path) == []


def test_a_listing_asks_the_file_server(tmp_path: Path) -> None:
    before = tmp_path.stat().st_ctime_ns
    give_up = time.monotonic() + 30
    while tmp_path.stat().st_ctime_ns == before:  # the clock of a file system may tick seldom
        assert time.monotonic() < give_up
        names_in(tmp_path)


def test_what_has_gone_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_file(tmp_path / "a") is None
    remove_file(tmp_path / "a")

    def stale(*_: object) -> int:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr("adaptor.protocol.spool.files.os.open", stale)
    assert read_file(tmp_path / "a") is None


def test_links_pipes_sockets_and_folders_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    for name in ("link", "pipe", "folder", "socket"):
        with pytest.raises(NotOursError, match=name):
            read_file(tmp_path / name)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(NotOursError, match="at most"):
        read_file(path)


def test_what_cannot_be_read_now_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("adaptor.protocol.spool.files.os.open", fail)
    with pytest.raises(OSError, match="Input/output"):
        read_file(tmp_path / "a")
