"""What may be said before a peer is known: nothing but a CURVE handshake, in its order and its size."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.zmtp import MOST_BEFORE_READY, Handshake, StrangeError
from tests.examples import examples
from tests.protocol.curve import GREETING, HELLO, oversized

INITIATE = b"\x06" + (600).to_bytes(8, "big") + b"\x08INITIATE" + bytes(591)
WELCOME = b"\x04" + bytes([168]) + b"\x07WELCOME" + bytes(160)
READY = b"\x04" + bytes([60]) + b"\x05READY" + bytes(54)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(places)]


@given(st.lists(st.integers(0, 10_000)), st.lists(st.integers(0, 10_000)), st.binary())
def test_a_handshake_is_read_in_whatever_pieces_it_comes(
    cuts: list[int], others: list[int], more: bytes
) -> None:
    handshake = Handshake()
    for piece in pieces(GREETING + HELLO + INITIATE, cuts):
        handshake.from_outside(piece)
    for piece in pieces(GREETING + WELCOME, others):
        handshake.from_inside(piece)
        assert not handshake.done
    assert handshake.half
    for piece in pieces(READY, cuts):
        handshake.from_inside(piece)
    assert handshake.done


def test_what_follows_ready_in_the_same_bytes_is_not_read() -> None:
    handshake = Handshake()
    handshake.from_inside(GREETING + WELCOME + READY + b"\x07 any message")
    assert handshake.done


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"\xff" + bytes(8) + b"\0",
        GREETING[:10] + b"\1",
        GREETING[:10] + b"\2",
        GREETING.replace(b"CURVE", b"NULL\0"),
        GREETING.replace(b"CURVE", b"PLAIN"),
        GREETING + oversized(2**40),
        GREETING + oversized(4096),
        GREETING + b"\0\5hello",
        GREETING + b"\4\5\5READY",
        GREETING + b"\4\x10\5HELLO" + bytes(10),
        GREETING + HELLO + HELLO,
        GREETING + HELLO + INITIATE + INITIATE,
        GREETING + HELLO + INITIATE + b"\0\5hello",
    ],
)
def test_anything_else_is_refused(said: bytes) -> None:
    with pytest.raises(StrangeError):
        Handshake().from_outside(said)


BEGINNINGS = st.sampled_from([b"", GREETING[:11], GREETING, GREETING + HELLO, GREETING + HELLO + INITIATE])


@given(BEGINNINGS, st.lists(st.binary(max_size=300), max_size=20))
@examples(200)
def test_no_bytes_do_anything_but_be_taken_or_refused(beginning: bytes, data: list[bytes]) -> None:
    """And what is held of them is bounded: the bound of a passage is never the one that counts."""
    handshake = Handshake()
    taken = 0
    with contextlib.suppress(StrangeError):
        for part in (beginning, *data):
            handshake.from_outside(part)
            taken += len(part)
            assert taken <= MOST_BEFORE_READY + 300
    assert not handshake.done


@given(st.lists(st.binary(max_size=300), max_size=20))
@examples(200)
def test_a_strange_inside_is_noticed_too(data: list[bytes]) -> None:
    handshake = Handshake()
    with contextlib.suppress(StrangeError):
        for part in data:
            handshake.from_inside(part)


def test_libzmq_says_what_is_expected_of_it() -> None:
    """The real thing, in both directions, byte by byte as it comes."""
    import zmq
    import zmq.asyncio

    async def through() -> Handshake:
        server_public, server_secret = zmq.curve_keypair()
        public, secret = zmq.curve_keypair()
        context = zmq.asyncio.Context()
        router, dealer = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
        handshake = Handshake()
        with socket.create_server(("127.0.0.1", 0)) as listener, router, dealer:
            router.curve_server, router.curve_secretkey = True, server_secret
            inside = router.bind_to_random_port("tcp://127.0.0.1")
            dealer.curve_serverkey, dealer.curve_publickey = server_public, public
            dealer.curve_secretkey, dealer.linger = secret, 0
            dealer.setsockopt(zmq.IDENTITY, b"x" * 255)  # the longest
            dealer.connect(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
            listener.setblocking(False)
            outside, _ = await asyncio.get_running_loop().sock_accept(listener)
            reader, writer = await asyncio.open_connection(sock=outside)
            back, there = await asyncio.open_connection("127.0.0.1", inside)

            async def pump(source: asyncio.StreamReader, told: object, sink: asyncio.StreamWriter) -> None:
                while not handshake.done and (part := await source.read(1)):
                    told(part)  # type: ignore[operator]
                    sink.write(part)

            inwards = asyncio.create_task(pump(reader, handshake.from_outside, there))
            await asyncio.wait_for(pump(back, handshake.from_inside, writer), 20)
            inwards.cancel()
            for end in (writer, there):
                end.close()
        context.term()
        return handshake

    handshake = asyncio.run(through())
    assert handshake.half
    assert handshake.done
