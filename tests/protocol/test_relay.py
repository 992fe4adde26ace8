"""The relay on a login node: passes bytes on, and is gone when nobody speaks to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest

from adaptor import __version__
from adaptor.protocol import relay
from adaptor.protocol.access import RELAYED_ACCESS, Access, Credentials, write_access
from adaptor.protocol.channel import Party
from adaptor.protocol.keys import new_identity
from adaptor.protocol.relay import Opened
from tests.living import PATIENCE
from tests.protocol.peers import FrameServer, Peer, call, client_hello, closed_by_peer, peer


class Daemon:
    """A port of the loopback that knows one certificate, and says again whatever it hears."""

    def __init__(self) -> None:
        self.server, self.worker = new_identity("server"), new_identity("worker")
        self._frames = FrameServer(Party(self.server, self.worker.certificate, server=True), named=True)
        self.port = self._frames.port
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._over.is_set():
            if self._frames.poll(0.02):
                self._frames.send(*self._frames.receive())

    def close(self) -> None:
        self._over.set()
        self._thread.join(PATIENCE)
        self._frames.close()


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    made = Daemon()
    yield made
    made.close()


class Relay:
    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "adaptor.protocol.relay", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.opened = msgspec.json.decode(self.process.stdout.readline(), type=Opened)

    @property
    def port(self) -> int:
        return int(self.opened.addresses[0].rpartition(":")[2])

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


def worker(relay: Relay, daemon: Daemon, name: bytes = b"1-n-1") -> AbstractContextManager[Peer]:
    return peer(relay.port, daemon.server.certificate, daemon.worker, name)


def test_bytes_pass_both_ways_for_several_callers(daemon: Daemon, tmp_path: Path) -> None:
    relay = Relay(str(daemon.port), str(tmp_path))
    assert relay.opened.version == __version__
    with worker(relay, daemon) as one, worker(relay, daemon, b"2-n-1") as other:
        large = os.urandom(3_000_000)
        one.send(large)
        other.send(b"other")
        assert other.receive() == b"other"
        assert one.receive() == large
    assert relay.end() == 0


def test_its_end_ends_the_callers_connections(daemon: Daemon, tmp_path: Path) -> None:
    relay = Relay(str(daemon.port), str(tmp_path))
    with call(relay.port) as caller:
        caller.sendall(client_hello())
        assert caller.recv(10)
        relay.end()
        assert closed_by_peer(caller)


def test_who_is_turned_away_by_the_daemon_is_closed_by_the_relay(daemon: Daemon, tmp_path: Path) -> None:
    relay = Relay(str(daemon.port), str(tmp_path))
    for said in (b"GET / HTTP/1.1\r\n\r\n", client_hello() + bytes(100_000)):
        with call(relay.port) as caller:
            with contextlib.suppress(ConnectionError):
                caller.sendall(said)
            assert closed_by_peer(caller)
    with worker(relay, daemon) as known:
        known.send(b"news")
        assert known.receive() == b"news"
    relay.end()


def test_silent_callers_take_no_more_than_their_room(daemon: Daemon, tmp_path: Path) -> None:
    relay = Relay(str(daemon.port), str(tmp_path))
    callers = [call(relay.port) for _ in range(200)]
    with worker(relay, daemon) as known:
        known.send(b"news")
        assert known.receive() == b"news"
    assert closed_by_peer(callers[0])
    for caller in callers:
        caller.close()
    relay.end()


def test_nobody_at_the_other_end_is_told_by_closing(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        relay = Relay(str(nobody.getsockname()[1]), str(tmp_path))
        with call(relay.port) as caller:
            caller.sendall(client_hello())
            assert closed_by_peer(caller)
        relay.end()


@pytest.fixture
def kept_port() -> Iterator[int]:
    """One that is given to nobody who does not ask for this very one."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("0.0.0.0", 0))
        yield keeper.getsockname()[1]


def test_the_next_relay_listens_where_workers_still_knock(
    daemon: Daemon, tmp_path: Path, kept_port: int
) -> None:
    def knock_at(*addresses: str) -> None:
        access = Access(addresses=addresses, server="s", own=Credentials("c", "k"))
        write_access(tmp_path / RELAYED_ACCESS, access)

    knock_at(f"tcp://login.example.org:{kept_port}")
    first = Relay(str(daemon.port), str(tmp_path), "login.example.org")
    assert first.opened.addresses[0] == f"tcp://login.example.org:{kept_port}"
    knock_at(*first.opened.addresses)
    first.end()
    second = Relay(str(daemon.port), str(tmp_path))
    assert second.port == first.port
    third = Relay(str(daemon.port), str(tmp_path))  # that port is taken now
    assert third.port != second.port
    second.end()
    third.end()


def test_without_a_sign_of_life_it_is_gone(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "SILENCE", 0.2)
    reading, writing = os.pipe()
    with os.fdopen(reading, "r") as nobody_speaks, open(os.devnull, "w") as unheard:
        monkeypatch.setattr(sys, "stdin", nobody_speaks)
        monkeypatch.setattr(sys, "stdout", unheard)
        asyncio.run(asyncio.wait_for(relay.relay(daemon.port, tmp_path, None), PATIENCE))
    os.close(writing)


def test_odd_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert relay.main([]) == 2
    assert relay.main(["port", "folder"]) == 2
    assert "usage" in capsys.readouterr().err
