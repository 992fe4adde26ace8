"""The endpoint: who is answered where, what is ignored, and a spool that cannot be used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from adaptor.daemon.spool import SpoolEndpoint
from adaptor.protocol.files.local import FilesDone, FilesError, NewFile
from adaptor.protocol.maildir import (
    UNREAD,
    Envelope,
    Seal,
    SpoolConnection,
    file_name,
    for_worker,
    from_workers,
    parse_daemon_file,
)
from adaptor.protocol.spool import Spool

SEAL = Seal("the workers' key")
WORKER = b"7-n1-42"


class Failing(Spool):
    """A spool that can be put out of use."""

    problem = ""

    def run(
        self,
        *,
        remove: list[bytes] = [],  # noqa: B006
        write: list[NewFile] = [],  # noqa: B006
        pilots: Collection[int] | None = None,
        collect: bool = True,
    ) -> tuple[FilesDone, bool]:
        if self.problem:
            raise FilesError(self.problem)
        return super().run(remove=remove, write=write, pilots=pilots, collect=collect)


class Scene:
    """An endpoint with a folder, and a pen to write as workers do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spool = Failing(folder)
        self.spool.locate()
        self.heard: list[tuple[bytes, bytes]] = []
        self.complaints: list[str] = []
        self.pilots = [7]
        self.answer: bytes | None = None
        """What every message is answered with, before the files are done."""
        self.endpoint = self.make_endpoint()

    def make_endpoint(self) -> SpoolEndpoint:
        return SpoolEndpoint(
            self.spool,
            SEAL,
            hear=self._hear,
            pilots=lambda: self.pilots,
            complain=self.complaints.append,
        )

    async def _hear(self, batch: list[tuple[bytes, bytes]]) -> None:
        self.heard += batch
        if self.answer is not None:
            for worker, _ in batch:
                self.endpoint.send(worker, self.answer)

    def connection(self, n: int = 1, token: str = "0123abcd", pilot: int = 7) -> SpoolConnection:
        connection = SpoolConnection(pilot, token, n)
        for_worker(self.folder, connection.name).mkdir(exist_ok=True)
        return connection

    def write(
        self,
        connection: SpoolConnection,
        number: int,
        *words: bytes,
        worker: bytes = WORKER,
        seal: Seal = SEAL,
    ) -> None:
        name = file_name(connection.name, number)
        envelope = Envelope(worker.decode(), list(words))
        (from_workers(self.folder) / name).write_bytes(seal.close(f"in/{name}", envelope))

    def exchange(self) -> list[bytes]:
        """What was heard this time."""
        before = len(self.heard)
        asyncio.run(self.endpoint.exchange())
        return [word for _, word in self.heard[before:]]

    def answers(self, connection: SpoolConnection) -> list[bytes]:
        """What lies in a connection, in order."""
        words = []
        for path in sorted(for_worker(self.folder, connection.name).iterdir()):
            if path.name.startswith("."):  # it is being written
                continue
            assert parse_daemon_file(path.name)
            words += SEAL.open(f"out/{connection.name}/{path.name}", path.read_bytes()).messages
        return words

    def files(self) -> list[str]:
        return [path.name for path in from_workers(self.folder).iterdir()]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "spools" / "spool")


def test_only_workers_that_wrote_are_reached(scene: Scene) -> None:
    assert not scene.endpoint.send(WORKER, b"x")
    scene.write(scene.connection(), 1, b"hello")
    scene.exchange()
    assert scene.endpoint.send(WORKER, b"x")
    assert not scene.endpoint.send(b"7-n2-1", b"x")


def test_the_newest_connection_of_a_worker_counts(scene: Scene) -> None:
    old, new = scene.connection(1), scene.connection(2)
    scene.write(old, 1, b"hello")
    scene.exchange()
    scene.endpoint.send(WORKER, b"for the old one")
    scene.write(new, 1, b"hello again")
    assert scene.exchange() == [b"hello again"]
    scene.write(old, 2, b"late")
    assert scene.exchange() == []
    scene.endpoint.send(WORKER, b"for the new one")
    scene.exchange()
    assert scene.answers(new) == [b"for the new one"]
    assert b"for the new one" not in scene.answers(old)


def test_what_was_meant_for_a_connection_that_is_gone_is_dropped(scene: Scene) -> None:
    connection = scene.connection()
    scene.write(connection, 1, b"hello")
    scene.exchange()
    for_worker(scene.folder, connection.name).rmdir()
    assert scene.endpoint.send(WORKER, b"x")
    scene.exchange()
    assert not scene.endpoint.send(WORKER, b"y"), "until it is heard again"


def test_unread_files_are_few_and_nothing_is_lost(scene: Scene) -> None:
    connection = scene.connection()
    scene.write(connection, 1, b"hello")
    scene.exchange()
    for number in range(30):
        scene.endpoint.send(WORKER, b"%d" % number)
        scene.exchange()
    lie = sorted(for_worker(scene.folder, connection.name).iterdir())
    assert len(lie) <= UNREAD
    said = scene.answers(connection)
    for path in lie:
        path.unlink()
    scene.exchange()
    scene.exchange()
    assert said + scene.answers(connection) == [b"%d" % number for number in range(30)]


@pytest.mark.parametrize("data", [b"", b"torn", SEAL.close("in/elsewhere", Envelope("7-n1-42", [b"x"]))])
def test_torn_and_foreign_worker_files_are_removed_with_a_warning(
    scene: Scene, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    connection = scene.connection()
    (from_workers(scene.folder) / file_name(connection.name, 1)).write_bytes(data)
    scene.write(scene.connection(1, "ffffffff"), 1, b"forged", seal=Seal("another key"))
    assert scene.exchange() == []
    assert caplog.text.count("ignored and removed") == 2
    scene.exchange()
    assert scene.files() == []
    assert not scene.endpoint.send(WORKER, b"x")


def test_a_spool_that_fails_is_complained_of_once_and_nothing_is_lost(scene: Scene) -> None:
    connection = scene.connection()
    scene.write(connection, 1, b"hello")
    scene.exchange()
    scene.endpoint.send(WORKER, b"answer")
    scene.spool.problem = "stale file handle"
    heard_until = scene.endpoint.heard_until
    for _ in range(3):
        assert scene.exchange() == []
    assert scene.complaints == ["its spool cannot be used: stale file handle"]
    assert scene.endpoint.heard_until == heard_until
    scene.spool.problem = ""
    scene.write(connection, 2, b"report")
    assert scene.exchange() == [b"report"]
    assert scene.answers(connection) == [b"answer"]
    assert scene.endpoint.heard_until > heard_until
    scene.spool.problem = "stale file handle"
    scene.exchange()
    assert len(scene.complaints) == 2


def test_what_ended_pilots_left_is_swept_and_forgotten(scene: Scene) -> None:
    connection = scene.connection(pilot=8)
    scene.pilots = [7, 8]
    scene.write(connection, 1, b"hello", worker=b"8-n1-1")
    scene.exchange()
    scene.pilots = [7]
    scene.endpoint._next_sweep = 0.0
    scene.exchange()
    assert not for_worker(scene.folder, connection.name).exists()
    assert not scene.endpoint.send(b"8-n1-1", b"x")


async def soon(condition: Callable[[], object]) -> None:
    deadline = asyncio.get_running_loop().time() + 60
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


def test_it_looks_again_and_again_and_stays_away_while_nothing_can_be_written_down(scene: Scene) -> None:
    asked: list[bool] = []
    open = False

    def may_listen() -> bool:
        asked.append(open)
        return open

    async def play() -> None:
        nonlocal open
        scene.write(scene.connection(), 1, b"hello")
        running = asyncio.create_task(scene.endpoint.run(may_listen))
        await soon(lambda: len(asked) >= 2)
        assert scene.heard == []
        open = True
        await soon(lambda: scene.heard)
        scene.endpoint.send(WORKER, b"answer")
        await soon(lambda: scene.answers(scene.connection()))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(play())
    assert scene.answers(scene.connection()) == [b"answer"]


def test_an_error_of_our_own_does_not_end_it(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        async def fail(_: object) -> None:
            raise RuntimeError("a mistake")

        hear, scene.endpoint._hear = scene.endpoint._hear, fail
        running = asyncio.create_task(scene.endpoint.run(lambda: True))
        scene.write(scene.connection(), 1, b"hello")
        await soon(lambda: "a mistake" in caplog.text)
        scene.endpoint._hear = hear
        scene.write(scene.connection(), 2, b"report")
        await soon(lambda: scene.heard)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(play())
    assert scene.heard == [(WORKER, b"report")]
