"""What a neighbour tries at the ports: he can reach them, and has no key."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from pathlib import Path

import msgspec
import psutil
import zmq

from adaptor import api
from adaptor.bag_spec import BagSpec
from adaptor.client import asking as client
from adaptor.errors import NoDaemonError
from adaptor.protocol.access import CLIENT_ACCESS, write_access
from tests.protocol.curve import GREETING, HELLO, call, closed_by_peer, oversized, peer
from tests.security.probe import probe
from tests.security.world import DESCRIPTORS, MB, World, as_mallory, callers

CLOSED = "the connection is closed, the daemon goes on"
SMALL = "less than 4 MB more in the daemon's memory, the connection is closed"


def turned_away(world: World, said: bytes) -> None:
    def say() -> bool:
        return all(_closed_after(port, said) for port in world.ports)

    assert as_mallory(say)
    world.well()


def _closed_after(port: int, said: bytes) -> bool:
    with call(port) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(said)
        return closed_by_peer(connection)


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


@probe("a TLS handshake at both ports", CLOSED)
def tls(world: World) -> None:
    turned_away(world, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500))


@probe("an older version of the protocol, without encryption", CLOSED)
def downgrade(world: World) -> None:
    turned_away(world, b"\xff" + bytes(8) + b"\x7f\x01\x05" + b"\0\0")


@probe("the same protocol with the mechanism NULL", CLOSED)
def null_mechanism(world: World) -> None:
    turned_away(world, GREETING.replace(b"CURVE", b"NULL\0"))


@probe("the same protocol with the mechanism PLAIN", CLOSED)
def plain_mechanism(world: World) -> None:
    turned_away(world, GREETING.replace(b"CURVE", b"PLAIN") + b"\4\x0f\5HELLO\4root\4root")


@probe("a message in place of the handshake", CLOSED)
def message_first(world: World) -> None:
    turned_away(world, GREETING + b"\0\5hello")


@probe("READY in place of the handshake", CLOSED)
def ready_first(world: World) -> None:
    turned_away(world, GREETING + b"\4\x06\5READY")


@probe("half a handshake with a HELLO of zeros", "no WELCOME; " + CLOSED)
def half_handshake(world: World) -> None:
    def say() -> bytes:
        with call(world.worker_port) as connection:
            connection.sendall(GREETING + HELLO)
            said = b""
            with contextlib.suppress(ConnectionError):
                while part := connection.recv(4096):
                    said += part
        return said

    assert b"WELCOME" not in as_mallory(say)
    world.well()


@probe("a command frame of 500 MB before the handshake, on 4 connections to each port", SMALL)
def large_command(world: World) -> None:
    memory_holds(world, GREETING + oversized(500 * MB))


@probe("a command frame of 500 MB after HELLO", SMALL)
def large_initiate(world: World) -> None:
    memory_holds(world, GREETING + HELLO + oversized(500 * MB))


@probe("a message frame of 500 MB before the handshake", SMALL)
def large_message(world: World) -> None:
    memory_holds(world, GREETING + b"\2" + (500 * MB).to_bytes(8, "big"))


@probe("a frame of 2^63 bytes", SMALL)
def huge_frame(world: World) -> None:
    memory_holds(world, GREETING + oversized(2**63))


@probe("the greeting byte by byte on 50 connections", "others are answered meanwhile; little memory")
def dribbling(world: World) -> None:
    before = world.resident()
    with callers(world.worker_port, 50) as made:
        for byte in GREETING[:20]:
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
    over = threading.Event()

    def knock() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError), socket.socket() as connection:
                connection.settimeout(5)
                connection.connect(("127.0.0.1", world.client_port))

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        for _ in range(5):
            world.well()
    finally:
        over.set()
        thread.join(60)


@probe("keys of his own and no server key", "the handshake never ends")
def own_keys(world: World) -> None:
    assert not _answers(world.client_port, zmq.curve_keypair()[0].decode())
    assert not _answers(world.worker_port, zmq.curve_keypair()[0].decode())
    world.well()


@probe("keys of his own and the daemon's public key, should that have leaked", "he is turned away")
def leaked_server_key(world: World) -> None:
    assert not _answers(world.client_port, world.keys.server.public)
    assert not _answers(world.worker_port, world.keys.server.public)
    world.well()


def _answers(port: int, server: str) -> bool:
    def ask() -> bool:
        public, secret = (key.decode() for key in zmq.curve_keypair())
        with peer(port, server, public, secret) as dealer:
            dealer.send(api.encode_question(api.GetDaemon()))
            return bool(dealer.poll(700))

    return as_mallory(ask)


@probe("the workers' key, should a node have leaked it, at the port of the command line", "he is turned away")
def workers_key_at_the_command_line(world: World) -> None:
    pair = world.keys.worker
    with peer(world.client_port, world.keys.server.public, pair.public, pair.secret) as dealer:
        dealer.send(api.encode_question(api.Stop(pilots=True)))
        assert not dealer.poll(700)
    world.well()


@probe("a recorded session of the command line, sent again", "it is no session: nothing is carried out")
def replay(world: World) -> None:
    recorded = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_record, args=(listener, world.client_port, recorded))
        thread.start()
        pair = world.keys.client
        port = listener.getsockname()[1]
        with peer(port, world.keys.server.public, pair.public, pair.secret) as dealer:
            dealer.send(api.encode_question(api.Submit(_bag(world))))
            assert dealer.poll(20_000)
        thread.join(60)
    bags = world.bags()

    def again() -> bytes:
        said = b""
        with call(world.client_port) as connection, contextlib.suppress(OSError):
            connection.sendall(recorded[: 64 + 202])
            said = connection.recv(65536)
            connection.sendall(recorded[64 + 202 :])
            while part := connection.recv(65536):
                said += part
        return said

    assert b"READY" not in as_mallory(again)
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


@probe("the sockets behind the ports", "they have no name: another process cannot connect to them")
def inner_sockets(world: World) -> None:
    named = [each.laddr for each in world.daemon.net_connections("unix") if each.laddr]
    assert named, "the inner sockets were bound to a name"

    def reach() -> list[str]:
        reached = []
        for name in {*map(str, named)}:
            with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
                connection.connect(name.replace("@", "\0", 1))
                reached.append(name)
        return reached

    assert as_mallory(reach) == []


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
    assert heard.startswith(b"\xff")
    assert len(heard) <= 64 + 202
    assert not any(secret in heard for secret in world.secrets)


def _listen(listener: socket.socket, heard: bytearray) -> None:
    listener.settimeout(60)
    for _ in range(2):  # the look whether anybody listens, then the handshake
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.settimeout(60)
            connection.sendall(GREETING)
            while part := connection.recv(4096):
                heard.extend(part)


@probe("a port scan of the daemon", "it listens at its two ports and nowhere else")
def port_scan(world: World) -> None:
    listening = {
        each.laddr.port for each in world.daemon.net_connections("tcp") if each.status == psutil.CONN_LISTEN
    }
    assert listening == set(world.ports)
