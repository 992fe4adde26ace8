"""Attacks of another user at the ports: he can reach them, and has no key."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil

from adaptor import api
from adaptor.bag_spec import BagSpec
from adaptor.client import asking as client
from adaptor.errors import NoDaemonError
from adaptor.protocol.access import CLIENT_ACCESS, write_access
from adaptor.protocol.channel import ChannelError, Party
from adaptor.protocol.keys import new_identity
from tests.new_bag import NewBag, submitted
from tests.protocol.peers import RECORD, call, client_hello, closed_by_peer, peer
from tests.security.probe import probe
from tests.security.world import DESCRIPTORS, MB, World, as_mallory, callers

CLOSED = "the connection is closed, the daemon goes on"
SMALL = "less than 4 MB more in the daemon's memory, the connection is closed"


def turned_away(world: World, said: bytes) -> None:
    def say() -> bool:
        with contextlib.ExitStack() as calls:
            connections = [calls.enter_context(call(port)) for port in world.ports]
            for connection in connections:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(said)
            return all(map(closed_by_peer, connections))

    assert as_mallory(say)
    world.well()


def memory_holds(world: World, beginning: bytes, connections: int = 4) -> None:
    def fill() -> None:
        for port in world.ports:
            with callers(port, connections) as made:
                for connection in made:
                    with contextlib.suppress(OSError):
                        connection.sendall(beginning)
                        for _ in range(60):
                            connection.sendall(b"A" * MB)

    before = world.resident()
    as_mallory(fill)
    assert world.resident() - before < 4 * MB
    world.well()


@probe("random bytes at both ports", CLOSED)
def garbage(world: World) -> None:
    turned_away(world, b"\0" + os.urandom(5000))


@probe("an HTTP request at both ports", CLOSED)
def http(world: World) -> None:
    turned_away(world, b"GET / HTTP/1.1\r\nHost: login\r\n\r\n")


@probe("TLS 1.2 at both ports", CLOSED)
def downgrade(world: World) -> None:
    turned_away(world, client_hello(ssl.TLSVersion.TLSv1_2))


@probe("a message in place of the handshake", CLOSED)
def message_first(world: World) -> None:
    turned_away(world, b"\0\0\0\5hello")


@probe("a message behind the first part of the handshake", CLOSED)
def message_in_the_handshake(world: World) -> None:
    turned_away(world, client_hello() + b"\0\0\0\5hello")


@probe("the first part of the handshake, and silence", CLOSED)
def half_handshake(world: World) -> None:
    turned_away(world, client_hello())


@probe("500 MB with the length of a message before them, on 4 connections to each port", SMALL)
def large_message(world: World) -> None:
    memory_holds(world, (500 * MB).to_bytes(4, "big"))


@probe("a record of TLS of 64 KB, repeatedly", SMALL)
def large_record(world: World) -> None:
    memory_holds(world, RECORD + b"\xff\xff")


@probe("a first part of the handshake of 16 MB", SMALL)
def large_hello(world: World) -> None:
    memory_holds(world, RECORD + b"\x40\x00\1\xff\xff\xff")


@probe("60 MB behind the first part of the handshake", SMALL)
def after_hello(world: World) -> None:
    memory_holds(world, client_hello())


@probe("the handshake byte by byte on 50 connections", "others are answered meanwhile; little memory")
def dribbling(world: World) -> None:
    before = world.resident()
    with callers(world.worker_port, 50) as made:
        for byte in client_hello()[:20]:
            for connection in made:
                with contextlib.suppress(OSError):
                    connection.sendall(bytes([byte]))
        world.well()
        assert world.resident() - before < 4 * MB


@probe(
    f"1,100 silent connections to a daemon that may have {DESCRIPTORS:,} descriptors",
    "it keeps some hundred of them at most, is answered at once, and runs commands",
)
def silent_crowd(world: World) -> None:
    with callers(world.worker_port, 700), callers(world.client_port, 400):
        world.well()
        assert world.daemon.num_fds() < DESCRIPTORS / 2
        begun, clock = world.daemon.cpu_times(), time.monotonic()
        answer = world.ask(api.GetSlots())
        assert not [site.problem for site in answer or [] if site.problem]
        time.sleep(1.0)
        now, took = world.daemon.cpu_times(), time.monotonic() - clock
    assert now.user + now.system - begun.user - begun.system < 0.9 * took
    world.well()


@probe("connections as fast as they can be made, for two seconds", "questions are answered meanwhile")
def flood(world: World) -> None:
    _flood(world, b"")


def _flood(world: World, said: bytes) -> None:
    over = threading.Event()

    def knock() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError), socket.socket() as connection:
                connection.settimeout(5)
                connection.connect(("127.0.0.1", world.client_port))
                connection.sendall(said)

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        for _ in range(5):
            world.well()
    finally:
        over.set()
        thread.join(60)


@probe(
    "600 connections to each port that stop in the middle of the handshake",
    "less than 24 MB more in the daemon's memory; it is answered at once",
)
def begun_crowd(world: World) -> None:
    before = world.resident()
    with callers(world.worker_port, 600) as workers, callers(world.client_port, 600) as clients:
        hello = client_hello()
        for connection in (*workers, *clients):
            with contextlib.suppress(OSError):
                connection.sendall(hello)
        world.well()
        assert world.resident() - before < 24 * MB
        assert world.daemon.num_fds() < DESCRIPTORS / 2
    world.well()


@probe("handshakes begun as fast as they can be, for two seconds", "questions are answered meanwhile")
def hello_flood(world: World) -> None:
    _flood(world, client_hello())


@probe("a certificate of his own, and the daemon's, which it shows at each handshake", "he is turned away")
def own_certificate(world: World) -> None:
    assert not _answers(world.client_port, world.keys.server.certificate)
    assert not _answers(world.worker_port, world.keys.server.certificate)
    world.well()


def _answers(port: int, server: str) -> bool:
    own = new_identity("client")

    def ask() -> bool:
        with peer(port, server, own) as asking:
            asking.send(api.encode_question(api.GetDaemon()))
            return asking.poll()

    return as_mallory(ask)


@probe("the workers' key, should a node have leaked it, at the port of the command line", "he is turned away")
def workers_key_at_the_command_line(world: World) -> None:
    with peer(world.client_port, world.keys.server.certificate, world.keys.worker) as asking:
        asking.send(api.encode_question(api.Stop(pilots=True)))
        assert not asking.poll()
    world.well()


@probe("a recorded session of the command line, sent again", "it is no session: nothing is carried out")
def replay(world: World) -> None:
    recorded = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_record, args=(listener, world.client_port, recorded))
        thread.start()
        port = listener.getsockname()[1]
        keys = (world.keys.server.certificate, world.keys.client)
        with peer(port, *keys, protocol=api.PROTOCOL) as asking:

            def ask(question: api.Question[Any]) -> Any:
                asking.send(api.encode_question(question))
                return api.decode_answer(question, asking.receive())

            assert isinstance(submitted(ask, NewBag(_bag(world))), api.Submitted)
        thread.join(60)
    bags = world.bags()
    hello = 5 + int.from_bytes(recorded[3:5], "big")

    def again() -> bool:
        with call(world.client_port) as connection, contextlib.suppress(OSError):
            connection.sendall(recorded[:hello])
            connection.recv(65536)
            connection.sendall(recorded[hello:])
            return closed_by_peer(connection)
        return True

    assert as_mallory(again)
    assert world.bags() == bags
    world.well()


def _bag(world: World) -> api.BagInput:
    folder = str(world.lab.work)
    spec = BagSpec(name="recorded", cwd=folder, output=f"{folder}/recorded", environment={}, sites=("here",))
    return api.BagInput(spec=spec, tasks=[api.TaskInput("true")])


def _record(listener: socket.socket, port: int, recorded: bytearray) -> None:
    listener.settimeout(60)
    outside, _ = listener.accept()
    with outside, call(port) as inside:

        def back() -> None:
            with contextlib.suppress(OSError):
                while part := inside.recv(65536):
                    outside.sendall(part)

        thread = threading.Thread(target=back)
        thread.start()
        with contextlib.suppress(OSError):
            while part := outside.recv(65536):
                recorded.extend(part)
                inside.sendall(part)
            inside.shutdown(socket.SHUT_RDWR)
        thread.join(60)


@probe("the daemon's port, taken over after its end", "the command line notices; what it said opens nothing")
def impostor(world: World) -> None:
    folder = Path(world.root / "impostor")
    folder.mkdir(mode=0o700)
    heard = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        write_access(folder / CLIENT_ACCESS, msgspec.structs.replace(world.access(), addresses=(address,)))
        thread = threading.Thread(target=_listen, args=(listener, heard))
        thread.start()
        before = os.environ.get("ADAPTOR_DIR"), client.HANDSHAKE_TIMEOUT
        os.environ["ADAPTOR_DIR"], client.HANDSHAKE_TIMEOUT = str(folder), 3.0
        try:
            client.ask(api.Stop(pilots=True))
            raise AssertionError("an impostor was taken for the daemon")
        except NoDaemonError:
            pass
        finally:
            client.HANDSHAKE_TIMEOUT = before[1]
            os.environ.pop("ADAPTOR_DIR")
            if before[0] is not None:
                os.environ["ADAPTOR_DIR"] = before[0]
        thread.join(60)
    assert heard.startswith(b"\x16\x03")
    assert not any(secret in heard for secret in world.secrets)


def _listen(listener: socket.socket, heard: bytearray) -> None:
    listener.settimeout(60)
    own = new_identity("server")
    connection, _ = listener.accept()
    channel = Party(own, own.certificate, server=True).channel(MB)
    with connection, contextlib.suppress(OSError, ChannelError):
        connection.settimeout(60)
        while part := connection.recv(4096):
            heard.extend(part)
            channel.receive(part)
            connection.sendall(channel.outgoing())


@probe("a port scan of the daemon", "it listens at its two ports and nowhere else")
def port_scan(world: World) -> None:
    listening = {
        each.laddr.port for each in world.daemon.net_connections("tcp") if each.status == psutil.CONN_LISTEN
    }
    assert listening == set(world.ports)
