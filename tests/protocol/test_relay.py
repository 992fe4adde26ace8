"""The relay on a login node: passes bytes on, and is gone when nobody speaks to it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor import __version__
from adaptor.protocol import relay
from adaptor.protocol.access import RELAYED_ACCESS, Access, write_access
from adaptor.protocol.relay import Opened


@pytest.fixture
def echo() -> Iterator[int]:
    """A port of the loopback at which everybody hears himself."""

    def serve(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)

    def accept() -> None:
        try:
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
        except OSError:
            return

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, daemon=True).start()
    yield int(listener.getsockname()[1])
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


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

    def call(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 20)

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(20)


def heard(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length and (part := connection.recv(65536)):
        data += part
    return data


def test_bytes_pass_both_ways_for_several_callers(echo: int, tmp_path: Path) -> None:
    relay = Relay(str(echo), str(tmp_path))
    assert relay.opened.version == __version__
    with relay.call() as one, relay.call() as other:
        large = os.urandom(300_000)
        sender = threading.Thread(target=one.sendall, args=(large,))
        sender.start()
        other.sendall(b"other")
        assert heard(other, 5) == b"other"
        assert heard(one, len(large)) == large
        sender.join()
        one.shutdown(socket.SHUT_WR)
        assert one.recv(10) == b""
    assert relay.end() == 0


def test_its_end_ends_the_callers_connections(echo: int, tmp_path: Path) -> None:
    relay = Relay(str(echo), str(tmp_path))
    with relay.call() as caller:
        caller.sendall(b"x")
        assert heard(caller, 1) == b"x"
        relay.end()
        assert caller.recv(10) == b""


def test_nobody_at_the_other_end_is_told_by_closing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()[1]
    relay = Relay(str(nobody), str(tmp_path))
    with relay.call() as caller:
        assert caller.recv(10) == b""
    relay.end()


def test_the_next_relay_listens_where_workers_still_knock(echo: int, tmp_path: Path) -> None:
    first = Relay(str(echo), str(tmp_path), "login.example.org")
    assert first.opened.addresses[0] == f"tcp://login.example.org:{first.port}"
    keys = {"server_key": "s", "public_key": "p", "secret_key": "k"}
    write_access(tmp_path / RELAYED_ACCESS, Access(addresses=first.opened.addresses, **keys))
    first.end()
    second = Relay(str(echo), str(tmp_path))
    assert second.port == first.port
    third = Relay(str(echo), str(tmp_path))  # that port is taken now
    assert third.port != second.port
    second.end()
    third.end()


def test_without_a_sign_of_life_it_is_gone(
    echo: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "SILENCE", 0.2)
    reading, writing = os.pipe()
    with os.fdopen(reading, "r") as nobody_speaks, open(os.devnull, "w") as unheard:
        monkeypatch.setattr(sys, "stdin", nobody_speaks)
        monkeypatch.setattr(sys, "stdout", unheard)
        asyncio.run(asyncio.wait_for(relay.relay(echo, tmp_path, None), 20))
    os.close(writing)


def test_odd_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert relay.main([]) == 2
    assert relay.main(["port", "folder"]) == 2
    assert "usage" in capsys.readouterr().err
