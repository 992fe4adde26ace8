"""Messages as files: names, what goes into which file, and files on a shared file system."""

from __future__ import annotations

import errno
import os
import socket
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol import maildir
from adaptor.protocol.maildir import (
    LARGEST,
    QUICKEST,
    TARGET,
    UNREAD,
    LookPace,
    NotOursError,
    Outgoing,
    SpoolConnection,
    address_of,
    file_name,
    folder_at,
    names_in,
    parse_connection,
    parse_daemon_file,
    parse_worker_file,
    read_file,
    remove_file,
    write_next,
)

RUN = "89abcdef"


tokens = st.text("0123456789abcdef", min_size=8, max_size=8)
numbers = st.integers(1, 10**12 - 1)


@given(st.integers(0, 10**18 - 1), tokens, st.integers(1, 10**9 - 1), numbers)
def test_worker_files_are_found_again(pilot: int, token: str, n: int, number: int) -> None:
    connection = SpoolConnection(pilot, token, n)
    assert parse_connection(connection.name) == connection
    assert parse_worker_file(file_name(connection.name, number)) == (connection, number)


@given(tokens, numbers)
def test_answers_are_found_again(run: str, number: int) -> None:
    assert parse_daemon_file(file_name(run, number)) == (run, number)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "7-01234567-1",
        "../7-01234567-1.00000001",
        ".7-01234567-1.00000001",
        "7-01234567-1.1",
        "a.b",
        "7-0123456Z-1.00000001",
        "7-01234567-1.00000001.bak",
        "7-01234567-1.00000001\n",
        "٧-01234567-1.00000001",
    ],
)
def test_other_names_are_not_ours(name: str) -> None:
    assert parse_worker_file(name) is None
    assert parse_daemon_file(name) is None


@pytest.mark.parametrize("name", ["", "..", "x", "1-2-3", "1-01234567-1/..", "1-01234567-1\n"])
def test_other_folders_are_not_ours(name: str) -> None:
    assert parse_connection(name) is None


def test_addresses(tmp_path: Path) -> None:
    odd = tmp_path / "with spaces, #, ? and %"
    assert folder_at(address_of(odd)) == odd


@pytest.mark.parametrize("address", ["spool://relative", "tcp://here:1", "/plain", "spool://"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(ValueError, match="not spool://"):
        folder_at(address)


def test_a_file_is_private_and_can_be_written_again(tmp_path: Path) -> None:
    name = file_name(RUN, 1)
    assert write_next(tmp_path, name, b"one")
    assert write_next(tmp_path, name, b"two")
    assert read_file(tmp_path / name) == b"two"
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert names_in(tmp_path) == [name]


def test_what_an_earlier_writer_left_half_done_is_not_in_the_way(tmp_path: Path) -> None:
    name = file_name(RUN, 1)
    (tmp_path / f".{name}").write_bytes(b"half")
    write_next(tmp_path, name, b"whole")
    assert read_file(tmp_path / name) == b"whole"
    assert names_in(tmp_path) == [name]


def test_few_files_of_a_writer_lie_there_unread(tmp_path: Path) -> None:
    names = [file_name(RUN, number) for number in range(1, UNREAD + 3)]
    assert all(write_next(tmp_path, name, b"x") for name in names[:UNREAD])
    assert not write_next(tmp_path, names[UNREAD], b"x")
    assert len(names_in(tmp_path)) == UNREAD
    remove_file(tmp_path / names[0])
    assert write_next(tmp_path, names[UNREAD], b"x")
    assert not write_next(tmp_path, names[UNREAD + 1], b"x")
    assert write_next(tmp_path, names[UNREAD + 1], b"x", anyhow=True)


def test_nothing_is_left_where_a_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="quota"):
        write_next(tmp_path, file_name(RUN, 1), b"data")
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

    def stale(*_: object, **__: object) -> int:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr("adaptor.private_files.os.open", stale)
    assert read_file(tmp_path / "a") is None


def test_links_pipes_sockets_and_folders_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    for name in ("link", "pipe", "folder", "socket"):
        with pytest.raises(NotOursError, match="it is a link" if name == "link" else "it is no plain file"):
            read_file(tmp_path / name)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(NotOursError, match="at most"):
        read_file(path)


def test_what_cannot_be_read_now_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("adaptor.private_files.os.open", fail)
    with pytest.raises(OSError, match="Input/output"):
        read_file(tmp_path / "a")


def write_all(outgoing: Outgoing) -> list[list[bytes]]:
    files = []
    while messages := outgoing.due():
        files.append(messages)
        outgoing.done()
    return files


def test_what_gathers_goes_into_one_file() -> None:
    outgoing = Outgoing()
    assert not outgoing.due()
    for word in (b"a", b"b", b"c"):
        assert outgoing.add(word)
    assert write_all(outgoing) == [[b"a", b"b", b"c"]]
    assert (outgoing.due(), outgoing.written) == ([], 1)


def test_files_are_not_much_larger_than_the_target() -> None:
    outgoing = Outgoing()
    half = b"x" * (TARGET // 2)
    for message in (half, half, b"y", half * 5, b"z"):
        outgoing.add(message)
    assert [[len(message) for message in file] for file in write_all(outgoing)] == [
        [len(half), len(half)],
        [1],
        [len(half) * 5],
        [1],
    ]


def test_a_file_that_could_not_be_written_stays_due_with_its_number() -> None:
    outgoing = Outgoing()
    outgoing.add(b"a")
    assert outgoing.due() == [b"a"]
    outgoing.add(b"b")
    assert (outgoing.due(), outgoing.written) == ([b"a"], 0)
    outgoing.done()
    assert (outgoing.due(), outgoing.written) == ([b"b"], 1)


def test_memory_is_limited() -> None:
    outgoing = Outgoing()
    large = b"x" * (maildir.MEMORY // 2)
    assert outgoing.add(large)
    assert outgoing.add(large)
    assert not outgoing.add(b"more")
    outgoing.due()
    assert outgoing.add(b"more")


def test_the_pace_slows_down_to_its_limit_and_speeds_up_again() -> None:
    pace = LookPace(slowest=1.0)
    pauses = [pace.pause]
    for _ in range(20):
        pace.slow_down()
        pauses.append(pace.pause)
    assert pauses == sorted(pauses)
    assert pauses[-1] == 1.0
    pace.speed_up()
    assert pace.pause == QUICKEST
