"""What every version has in common, byte by byte. No line of this file may be changed, only some added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from adaptor import api
from adaptor.api import decode_answer, decode_question, encode_answer, encode_question
from adaptor.daemon.lock import Holder, holder_of, take_lock
from adaptor.errors import AdaptorError, UsageError
from adaptor.protocol.access import Access, Credentials, read_access
from adaptor.protocol.channel import Channel, Party
from adaptor.protocol.keys import new_identity
from tests.api.golden import protocol
from tests.api.other_daemon import recorded

QUESTIONS: list[tuple[api.Question[Any], bytes]] = [
    (api.GetDaemon(), b"\x81\xa4type\xa9GetDaemon"),
    (api.Stop(), b"\x82\xa4type\xa4Stop\xa6pilots\xc2"),
    (api.Stop(pilots=True), b"\x82\xa4type\xa4Stop\xa6pilots\xc3"),
    (api.Reload(), b"\x81\xa4type\xa6Reload"),
]
DAEMON = (
    b"\x92\xc0\x8c\xa3pid\x07\xa4host\xa6login1\xa7version\xa30.1\xa7started\xcb?\xf8\x00\x00\x00\x00\x00\x00"
    b"\xafstate_directory\xa2/s\xa7workers\x02\xaaunfinished\x03\xa7stalled\xa4full\xaauntil_idle\xc3"
    b"\xabconfig_file\xa2/c\xadconfig_digest\xa1d\xaeconfig_problem\xa1p"
)
RELOADING = (
    b"\x92\xc0\x86\xa4file\xa2/c\xa6digest\xa1d\xa5added\x91\xa1a\xa7removed\x91\xa1r\xa7changed\x91\xa1c"
    b"\xa6others\x91\xa1o"
)
REFUSED = b"\x92\x82\xa7message\xa2no\xa5usage\xc3\xc0"


@pytest.mark.parametrize(("question", "data"), QUESTIONS)
def test_questions(question: api.Question[Any], data: bytes) -> None:
    assert encode_question(question) == data
    assert decode_question(data, same=False) == question


def test_answers() -> None:
    daemon = api.DaemonView(
        pid=7, host="login1", version="0.1", started=1.5, state_directory="/s", workers=2, unfinished=3,
        stalled="full", until_idle=True, config_file="/c", config_digest="d", config_problem="p",
    )  # fmt: skip
    reloading = api.Reloading("/c", "d", ["a"], ["r"], ["c"], ["o"])
    questions: list[tuple[api.Question[Any], Any, bytes]] = [
        (api.GetDaemon(), daemon, DAEMON), (api.Reload(), reloading, RELOADING),
    ]  # fmt: skip
    for question, answer, data in questions:
        assert decode_answer(question, data) == answer
        said, known = msgspec.msgpack.decode(encode_answer(answer))[1], msgspec.msgpack.decode(data)[1]
        assert {name: said[name] for name in known} == known
    assert encode_answer(None) == b"\x92\xc0\xc0"
    assert decode_answer(api.Stop(), b"\x92\xc0\xc0") is None


def test_failures() -> None:
    assert encode_answer(api.Failure("no", usage=True)) == REFUSED
    with pytest.raises(UsageError, match=r"^no$"):
        decode_answer(api.Stop(), REFUSED)
    with pytest.raises(AdaptorError, match=r"^no$"):
        decode_answer(api.Stop(), b"\x91\x81\xa7message\xa2no")


def test_answers_of_later_versions_have_more_and_those_of_earlier_ones_less() -> None:
    least = {"pid": 7, "host": "login1", "version": "0"}
    found = decode_answer(api.GetDaemon(), msgspec.msgpack.encode([None, least]))
    assert (found.pid, found.unfinished, found.config_file) == (7, None, "")
    later = {**least, "unheard": {"of": [1]}}
    assert decode_answer(api.GetDaemon(), msgspec.msgpack.encode([None, later, "more"])) == found
    assert not decode_answer(api.Reload(), msgspec.msgpack.encode([None, {}])).any
    for question, data in recorded().items():
        if b"Other" not in question:
            decode_answer(decode_question(question, same=False), data)


def test_nothing_else_is_understood_of_a_client_of_another_version() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_question(encode_question(api.Cancel([1])), same=False)


def _meet(listening: str, calling: str) -> tuple[Channel, Channel]:
    server, client = new_identity("server"), new_identity("client")
    here = Party(server, client.certificate, server=True, protocol=listening).channel(1000)
    there = Party(client, server.certificate, server=False, protocol=calling).channel(1000)
    here.receive(there.outgoing())
    there.receive(here.outgoing())
    here.receive(there.outgoing())
    return here, there


@pytest.mark.parametrize(("listening", "calling"), [("1-a", "1-b"), ("", "1-b"), ("1-a", ""), ("", "")])
def test_channels_open_whatever_protocol_the_sides_name(listening: str, calling: str) -> None:
    here, there = _meet(listening, calling)
    assert not here.agreed
    assert not there.agreed
    there.send(b"who are you?")
    assert here.receive(there.outgoing()) == [b"who are you?"]


def test_both_sides_know_that_they_name_the_same() -> None:
    here, there = _meet("1-a", "1-a")
    assert here.agreed
    assert there.agreed


class _Tls:
    """Without encryption: what is written and read."""

    server_side = True

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data


def test_a_message_is_behind_its_length() -> None:
    tls = _Tls()
    channel = Channel(tls, None, None, b"", 1000)  # type: ignore[arg-type]
    channel.proven = True
    channel.send(b"\x91" * 300)
    assert tls.written == b"\x00\x00\x01\x2c" + b"\x91" * 300


def test_the_file_that_says_how_to_reach_the_daemon(tmp_path: Path) -> None:
    path = tmp_path / "access-client.json"
    path.write_text(
        '{"addresses":["tcp://127.0.0.1:5"],"server":"PEM","own":{"certificate":"OURS","key":"KEY"},"later":1}'
    )
    path.chmod(0o600)
    assert read_access(path) == Access(
        addresses=("tcp://127.0.0.1:5",), server="PEM", own=Credentials("OURS", "KEY")
    )


def test_the_file_that_names_the_holder_of_the_lock(tmp_path: Path) -> None:
    (tmp_path / "daemon.lock").write_text('{"host":"login1","boot":"b","pid":7,"ticks":8,"later":1}')
    assert holder_of(tmp_path) == Holder("login1", "b", 7, 8)
    (tmp_path / "daemon.lock").unlink()
    with take_lock(tmp_path):
        assert sorted(msgspec.json.decode((tmp_path / "daemon.lock").read_bytes())) == [
            "boot", "host", "pid", "ticks",
        ]  # fmt: skip


def test_the_protocol_is_another_one_where_messages_look_different() -> None:
    """`python -m tests.api.golden` writes it."""
    assert protocol() == api.PROTOCOL
