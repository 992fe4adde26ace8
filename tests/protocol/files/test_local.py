"""Files on a shared file system: written whole or not, what has gone, and what is not ours."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adaptor.protocol.files.local import LOCAL_FILES, FileEnd, FilesDone, FilesError, FileWork, NewFile
from tests.living import PATIENCE


def put(path: Path, data: bytes, unless: Path | None = None) -> FilesDone:
    return LOCAL_FILES.run(
        FileWork(write=[NewFile(bytes(path), data, bytes(unless) if unless is not None else b"")])
    )


def names(folder: Path) -> list[bytes]:
    return LOCAL_FILES.run(FileWork(names=[bytes(folder)], fresh=True)).names[bytes(folder)]


def read(path: Path, most: int = 100) -> list[FileEnd]:
    return LOCAL_FILES.run(FileWork(read=[bytes(path)], most=most, whole=True)).ends


def failing(code: int) -> Callable[..., int]:
    def fail(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_file_is_private_and_can_be_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    put(path, b"one")
    put(path, b"two")
    assert read(path) == [FileEnd(bytes(path), 3, b"two")]
    assert path.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == [b"a"]


def test_a_file_is_held_while_another_one_lies_there(tmp_path: Path) -> None:
    put(tmp_path / "1", b"x")
    assert put(tmp_path / "2", b"x", unless=tmp_path / "1").held == [bytes(tmp_path / "2")]
    LOCAL_FILES.run(FileWork(remove=[bytes(tmp_path / "1")]))
    assert put(tmp_path / "2", b"x", unless=tmp_path / "1").held == []
    assert names(tmp_path) == [b"2"]


def test_nothing_is_left_where_a_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "rename", failing(errno.EDQUOT))
    with pytest.raises(FilesError, match="quota"):
        put(tmp_path / "a", b"data")
    assert names(tmp_path) == []


def test_a_listing_asks_the_file_server(tmp_path: Path) -> None:
    before = tmp_path.stat().st_ctime_ns
    give_up = time.monotonic() + PATIENCE
    while tmp_path.stat().st_ctime_ns == before:  # the clock of a file system may tick seldom
        assert time.monotonic() < give_up
        names(tmp_path)


def test_what_has_gone_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(tmp_path / "a") == []
    LOCAL_FILES.run(FileWork(remove=[bytes(tmp_path / "a")]))
    monkeypatch.setattr("adaptor.private_files.os.open", failing(errno.ESTALE))
    assert read(tmp_path / "a") == []


def test_links_pipes_sockets_and_folders_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    for name in ("link", "pipe", "folder", "socket"):
        (end,) = read(tmp_path / name)
        assert end.foreign
        assert ("it is a link" if name == "link" else "it is no plain file") in end.problem
        assert not end.data


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "huge").write_bytes(b"x" * 101)
    assert read(tmp_path / "huge") == [FileEnd(bytes(tmp_path / "huge"), 101)]


def test_what_cannot_be_read_now_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptor.private_files.os.open", failing(errno.EIO))
    (end,) = read(tmp_path / "a")
    assert "Input/output" in end.problem
    assert not end.foreign
