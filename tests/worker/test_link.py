"""For how long the worker waits at one address, and when it calls again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaptor.protocol.access import Access, Credentials, write_access
from adaptor.protocol.messages import Goodbye, Leaving
from adaptor.worker import link as links
from adaptor.worker.link import NEXT_TRY, Link
from adaptor.worker.tls_transport import GREETING, IN_LINE, PATIENCE

FIRST, SECOND = "tcp://192.0.2.1:5", "tcp://192.0.2.2:5"


class Line:
    """A connection whose progress the test says."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.taken = self.broken = False
        self.patience, self.problem = PATIENCE, ""
        self.closed = False

    def take(self) -> None:
        self.taken, self.patience = True, IN_LINE

    def breaks(self) -> None:
        self.broken, self.problem = True, "refused"

    def send(self, _data: bytes) -> bool:
        return True

    def receive(self, _seconds: float) -> list[bytes]:
        return []

    def close(self, _linger: float) -> None:
        self.closed = True


class Lines:
    def __init__(self) -> None:
        self.made: list[Line] = []

    def connect(self, _access: Access, address: str) -> Line:
        self.made.append(Line(address))
        return self.made[-1]

    def end(self) -> None: ...


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    made = Lines()
    monkeypatch.setattr(Link, "_make_connector", lambda *_: made)
    monkeypatch.setattr(links, "jittered", lambda seconds: seconds)
    return made


@pytest.fixture
def link(tmp_path: Path, lines: Lines) -> Link:
    path = tmp_path / "access-worker.json"
    write_access(path, Access(addresses=(FIRST, SECOND), server="", own=Credentials("", "")))
    return Link(path, "1-n1-7", os.eventfd(0), lambda _text: None)


def test_an_address_that_takes_no_connection_is_left_soon(link: Link, lines: Lines) -> None:
    assert link.reach(100.0)
    link.note_progress(101.0)
    assert link.next_try == 100 + PATIENCE
    assert not link.in_line
    assert link.reach(102.0)
    assert lines.made[0].closed
    assert [line.address for line in lines.made] == [FIRST, SECOND]


def test_who_is_in_line_stays_there(link: Link, lines: Lines) -> None:
    link.reach(100.0)
    (line,) = lines.made
    line.take()
    link.note_progress(101.0)
    assert link.next_try == 101 + IN_LINE
    assert link.in_line
    link.note_progress(110.0)
    assert link.next_try == 101 + IN_LINE, "only progress prolongs it"
    line.patience = GREETING
    link.note_progress(115.0)
    assert link.next_try == 115 + GREETING
    link.heard()
    assert not link.in_line


def test_patience_grows_by_the_round(link: Link, lines: Lines) -> None:
    waits = []
    for _ in range(5):
        for now in (100.0, 200.0):
            link.reach(now)
            lines.made[-1].take()
            link.note_progress(now + 1)
            waits.append(link.next_try - now - 1)
    assert waits == [IN_LINE * round for round in (1, 1, 2, 2, 3, 3, 3, 3, 3, 3)]


def test_after_a_refusal_the_next_address_is_tried_at_once_and_the_next_round_soon(
    link: Link, lines: Lines
) -> None:
    link.reach(100.0)
    lines.made[-1].breaks()
    assert not link.note_break(100.5)
    assert link.next_try == 100.5
    link.reach(100.5)
    lines.made[-1].take()
    link.note_progress(101.0)
    lines.made[-1].breaks()
    assert not link.note_break(102.0), "it was not in use yet"
    assert link.next_try == 102 + NEXT_TRY
    assert not link.send(Goodbye(why=Leaving.IDLE))


def test_workers_that_failed_together_do_not_call_again_together() -> None:
    waits = [links.jittered(8.0) for _ in range(200)]
    assert 6 <= min(waits) < max(waits) <= 10
    assert len(set(waits)) > 20
