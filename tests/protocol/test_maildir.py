"""Messages as files: names, and what goes into which file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol import maildir
from adaptor.protocol.maildir import (
    QUICKEST,
    TARGET,
    UNREAD,
    Envelope,
    LookPace,
    Outgoing,
    Seal,
    SealError,
    SpoolConnection,
    address_of,
    file_name,
    folder_at,
    parse_connection,
    parse_daemon_file,
    parse_worker_file,
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


def pen() -> Outgoing:
    return Outgoing(Path("/spool"), Path("/spool/in"), RUN, Seal("key"))


def test_a_file_waits_for_those_before_it_and_says_where_it_belongs() -> None:
    outgoing = pen()
    for number in range(1, UNREAD + 2):
        outgoing.add(b"%d" % number)
        file = outgoing.next_file("7-n1-1")
        assert file is not None
        assert file.path == outgoing.path(number)
        assert file.unless == (outgoing.path(1) if number > UNREAD else b"")
        assert Seal("key").open(f"in/{file_name(RUN, number)}", file.data).messages == [b"%d" % number]
        outgoing.done()
    assert outgoing.next_file("7-n1-1") is None


def write_all(outgoing: Outgoing) -> list[list[bytes]]:
    files = []
    while messages := outgoing.due():
        files.append(messages)
        outgoing.done()
    return files


def test_what_gathers_goes_into_one_file() -> None:
    outgoing = pen()
    assert not outgoing.due()
    for word in (b"a", b"b", b"c"):
        assert outgoing.add(word)
    assert write_all(outgoing) == [[b"a", b"b", b"c"]]
    assert (outgoing.due(), outgoing.written) == ([], 1)


def test_files_are_not_much_larger_than_the_target() -> None:
    outgoing = pen()
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
    outgoing = pen()
    outgoing.add(b"a")
    assert outgoing.due() == [b"a"]
    outgoing.add(b"b")
    assert (outgoing.due(), outgoing.written) == ([b"a"], 0)
    outgoing.done()
    assert (outgoing.due(), outgoing.written) == ([b"b"], 1)


def test_memory_is_limited() -> None:
    outgoing = pen()
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


SEAL = Seal("the workers' key")
ENVELOPE = Envelope("7-n1-42", [b"one", b"two"])


@given(st.text(), st.lists(st.binary(max_size=50), max_size=5), st.text(max_size=40))
def test_what_is_closed_can_be_opened(worker: str, messages: list[bytes], place: str) -> None:
    envelope = Envelope(worker, messages)
    assert SEAL.open(place, SEAL.close(place, envelope)) == envelope


@given(st.data())
def test_a_torn_or_changed_file_is_turned_away(data: st.DataObject) -> None:
    sealed = SEAL.close("in/x", ENVELOPE)
    cut = data.draw(st.integers(0, len(sealed) - 1))
    with pytest.raises(SealError, match="in/x"):
        SEAL.open("in/x", sealed[:cut])
    changed = bytearray(sealed)
    changed[cut] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SealError):
        SEAL.open("in/x", bytes(changed))


def test_a_file_of_another_key_or_place_is_turned_away() -> None:
    sealed = SEAL.close("in/x", ENVELOPE)
    with pytest.raises(SealError):
        Seal("another daemon's key").open("in/x", sealed)
    with pytest.raises(SealError):
        SEAL.open("out/x", sealed)


def test_a_file_of_another_version_is_said_so() -> None:
    seal = Seal("key")
    content = b"\x93\x01\x02\x03"
    with pytest.raises(SealError, match="cannot be decoded"):
        seal.open("in/x", seal._seal("in/x", content) + content)
