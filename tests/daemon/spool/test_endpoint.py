"""The postman: who is answered where, what is passed over, and a mailbox that cannot be used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from adaptor.daemon.spool.endpoint import Postman
from adaptor.protocol.spool.directory import DirectoryRoom
from adaptor.protocol.spool.exchange import Errand, MailRoomError, Outcome
from adaptor.protocol.spool.layout import Box, inbox, letter_name, outbox, parse_answer
from adaptor.protocol.spool.seal import Envelope, Read, Seal

SEAL = Seal("the workers' key")
WORKER = b"7-n1-42"


class Failing(DirectoryRoom):
    """A mailbox that can be put out of use."""

    problem = ""

    def run(self, errand: Errand) -> Outcome:
        if self.problem:
            raise MailRoomError(self.problem)
        return super().run(errand)


class Office:
    """A postman with a folder, and a pen to write as workers do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.room = Failing(folder)
        self.heard: list[tuple[bytes, bytes]] = []
        self.complaints: list[str] = []
        self.pilots = [7]
        self.answer: bytes | None = None
        """What every message is answered with, before the letters are done."""
        self.postman = self.hire()

    def hire(self) -> Postman:
        return Postman(
            self.room,
            SEAL,
            hear=self._hear,
            pilots=lambda: self.pilots,
            complain=self.complaints.append,
        )

    async def _hear(self, batch: list[tuple[bytes, bytes]]) -> None:
        self.heard += batch
        if self.answer is not None:
            for worker, _ in batch:
                self.postman.post(worker, self.answer)

    def box(self, n: int = 1, token: str = "0123abcd", pilot: int = 7) -> Box:
        box = Box(pilot, token, n)
        outbox(self.folder, box.name).mkdir(exist_ok=True)
        return box

    def write(
        self,
        box: Box,
        number: int,
        *words: bytes,
        worker: bytes = WORKER,
        oldest: int = 1,
        read: Read | None = None,
        seal: Seal = SEAL,
    ) -> None:
        name = letter_name(box.name, number)
        envelope = Envelope(worker.decode(), list(words), oldest, read)
        (inbox(self.folder) / name).write_bytes(seal.close(f"in/{name}", envelope))

    def exchange(self) -> list[bytes]:
        """What was heard this time."""
        before = len(self.heard)
        asyncio.run(self.postman.exchange())
        return [word for _, word in self.heard[before:]]

    def answers(self, box: Box) -> list[bytes]:
        """What lies in a box, in order."""
        words = []
        for path in sorted(outbox(self.folder, box.name).iterdir()):
            assert parse_answer(path.name)
            words += SEAL.open(f"out/{box.name}/{path.name}", path.read_bytes()).messages
        return words

    def letters(self) -> list[str]:
        return [path.name for path in inbox(self.folder).iterdir()]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path / "mail" / "room")


def test_what_comes_is_heard_once_answered_and_removed(office: Office) -> None:
    box = office.box()
    office.answer = b"welcome"
    office.write(box, 1, b"hello", b"report")
    assert office.exchange() == [b"hello", b"report"]
    assert office.heard[0][0] == WORKER
    assert office.answers(box) == [b"welcome"] * 2, "without waiting for the next look"
    assert office.letters() == []
    assert office.exchange() == []


def test_only_workers_that_wrote_are_reached_by_mail(office: Office) -> None:
    assert not office.postman.post(WORKER, b"x")
    office.write(office.box(), 1, b"hello")
    office.exchange()
    assert office.postman.post(WORKER, b"x")
    assert not office.postman.post(b"7-n2-1", b"x")


def test_letters_are_heard_in_order_though_the_listing_lags(office: Office) -> None:
    box = office.box()
    office.write(box, 1, b"1")
    office.write(box, 3, b"3")
    assert office.exchange() == [b"1"]
    office.write(box, 2, b"2")
    assert office.exchange() == [b"2", b"3"]


def test_a_letter_that_appears_again_is_not_heard_again(office: Office) -> None:
    box = office.box()
    for number in (1, 2):
        office.write(box, number, b"%d" % number)
    office.exchange()
    office.write(box, 1, b"1")
    assert office.exchange() == []
    office.exchange()
    assert office.letters() == []


def test_a_restarted_daemon_goes_on_in_the_middle(office: Office) -> None:
    box = office.box()
    office.write(box, 1, b"1")
    office.exchange()
    office.postman = office.hire()
    office.write(box, 2, b"2", oldest=2, read=Read("89abcdef", 5))
    assert office.exchange() == [b"2"]
    office.postman.post(WORKER, b"say hello")
    office.exchange()
    assert office.answers(box) == [b"say hello"]


def test_the_newest_box_of_a_worker_counts(office: Office) -> None:
    old, new = office.box(1), office.box(2)
    office.write(old, 1, b"hello")
    office.exchange()
    office.postman.post(WORKER, b"for the old one")
    office.write(new, 1, b"hello again")
    assert office.exchange() == [b"hello again"]
    office.write(old, 2, b"late")
    assert office.exchange() == []
    office.postman.post(WORKER, b"for the new one")
    office.exchange()
    assert office.answers(new) == [b"for the new one"]
    assert b"for the new one" not in office.answers(old)


def test_what_was_meant_for_a_box_that_is_gone_is_dropped(office: Office) -> None:
    box = office.box()
    office.write(box, 1, b"hello")
    office.exchange()
    outbox(office.folder, box.name).rmdir()
    assert office.postman.post(WORKER, b"x")
    office.exchange()
    assert not office.postman.post(WORKER, b"y"), "until it is heard again"


def test_unread_files_are_few_and_nothing_is_lost(office: Office) -> None:
    box = office.box()
    office.write(box, 1, b"hello")
    office.exchange()
    for number in range(30):
        office.postman.post(WORKER, b"%d" % number)
        office.exchange()
    lie = sorted(outbox(office.folder, box.name).iterdir())
    assert len(lie) <= 8
    said = office.answers(box)
    for path in lie:
        path.unlink()
    life, last = parse_answer(lie[-1].name) or ("", 0)
    office.write(box, 2, b"report", read=Read(life, last))
    office.exchange()
    office.exchange()
    assert said + office.answers(box) == [b"%d" % number for number in range(30)]


@pytest.mark.parametrize("data", [b"", b"torn", SEAL.close("in/elsewhere", Envelope("7-n1-42", [b"x"], 1))])
def test_torn_and_foreign_letters_are_removed_with_a_warning(
    office: Office, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    box = office.box()
    (inbox(office.folder) / letter_name(box.name, 1)).write_bytes(data)
    office.write(office.box(1, "ffffffff"), 1, b"forged", seal=Seal("another key"))
    assert office.exchange() == []
    assert caplog.text.count("passed over") == 2
    office.exchange()
    assert office.letters() == []
    assert not office.postman.post(WORKER, b"x")


def test_a_mailbox_that_fails_is_complained_of_once_and_nothing_is_lost(office: Office) -> None:
    box = office.box()
    office.write(box, 1, b"hello")
    office.exchange()
    office.postman.post(WORKER, b"answer")
    office.room.problem = "stale file handle"
    heard_until = office.postman.heard_until
    for _ in range(3):
        assert office.exchange() == []
    assert office.complaints == ["its mailbox cannot be used: stale file handle"]
    assert office.postman.heard_until == heard_until
    office.room.problem = ""
    office.write(box, 2, b"report")
    assert office.exchange() == [b"report"]
    assert office.answers(box) == [b"answer"]
    assert office.postman.heard_until > heard_until
    office.room.problem = "stale file handle"
    office.exchange()
    assert len(office.complaints) == 2


def test_what_ended_pilots_left_is_swept_and_forgotten(office: Office) -> None:
    box = office.box(pilot=8)
    office.pilots = [7, 8]
    office.write(box, 1, b"hello", worker=b"8-n1-1")
    office.exchange()
    office.pilots = [7]
    office.postman._next_sweep = 0.0
    office.exchange()
    assert not outbox(office.folder, box.name).exists()
    assert not office.postman.post(b"8-n1-1", b"x")


async def soon(condition: Callable[[], object]) -> None:
    deadline = asyncio.get_running_loop().time() + 20
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


def test_it_looks_again_and_again_and_stays_away_while_nothing_can_be_written_down(office: Office) -> None:
    asked: list[bool] = []
    open = False

    def may_listen() -> bool:
        asked.append(open)
        return open

    async def scene() -> None:
        nonlocal open
        office.write(office.box(), 1, b"hello")
        running = asyncio.create_task(office.postman.run(may_listen))
        await soon(lambda: len(asked) >= 2)
        assert office.heard == []
        open = True
        await soon(lambda: office.heard)
        office.postman.post(WORKER, b"answer")
        await soon(lambda: office.answers(office.box()))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scene())
    assert office.answers(office.box()) == [b"answer"]


def test_an_error_of_our_own_does_not_end_it(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async def fail(_: object) -> None:
            raise RuntimeError("a mistake")

        hear, office.postman._hear = office.postman._hear, fail
        running = asyncio.create_task(office.postman.run(lambda: True))
        office.write(office.box(), 1, b"hello")
        await soon(lambda: "a mistake" in caplog.text)
        office.postman._hear = hear
        office.write(office.box(), 2, b"report")
        await soon(lambda: office.heard)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scene())
    assert office.heard == [(WORKER, b"report")]
