"""Messages over TLS without I/O: who is let in, what passes, and what never does."""

from __future__ import annotations

import contextlib
import datetime
import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.access import Credentials
from adaptor.protocol.channel import LARGEST_FROM_KEY, Channel, ChannelError, Party, fingerprint
from adaptor.protocol.keys import new_identity
from tests.protocol.peers import client_hello

LARGEST = 100_000
SERVER, WORKER, CLIENT = (new_identity(name) for name in ("server", "worker", "client"))
LISTENING = Party(SERVER, WORKER.certificate, server=True)
CALLING = Party(WORKER, SERVER.certificate, server=False)


def connected() -> tuple[Channel, Channel]:
    """Both ends after their handshake: the server's and the worker's."""
    here, there = LISTENING.channel(LARGEST), CALLING.channel(LARGEST)
    here.receive(there.outgoing())
    there.receive(here.outgoing())
    here.receive(there.outgoing())
    assert here.proven
    assert there.proven
    return here, there


def turned_away(party: Party, listening: Party = LISTENING) -> str:
    """Why, after all that it sends; nothing that it says is heard."""
    here, there = listening.channel(LARGEST), party.channel(LARGEST)
    there.send(b"a message")
    assert here.receive(there.outgoing()) == []
    assert there.receive(here.outgoing()) == []
    with pytest.raises(ChannelError) as caught:
        here.receive(there.outgoing())
    assert not here.proven
    return str(caught.value)


@given(
    st.lists(st.binary(max_size=300) | st.just(b"x" * 40_000), max_size=5),
    st.integers(1, 70_000),
)
def test_messages_arrive_whole_and_in_order_however_they_are_cut(messages: list[bytes], cut: int) -> None:
    here, there = connected()
    for message in messages:
        there.send(message)
    data, heard = there.outgoing(), []
    for begin in range(0, len(data), cut):
        heard += here.receive(data[begin : begin + cut])
    assert heard == messages


def test_messages_of_before_the_handshake_follow_it() -> None:
    here, there = LISTENING.channel(LARGEST), CALLING.channel(LARGEST)
    there.send(b"name")
    there.send(b"hello")
    here.send(b"welcome")
    assert here.receive(there.outgoing()) == []
    assert there.receive(here.outgoing()) == []
    assert here.receive(there.outgoing()) == [b"name", b"hello"]
    assert there.receive(here.outgoing()) == [b"welcome"]


def test_nothing_travels_in_plain_text() -> None:
    here, there = connected()
    there.send(b"a secret" * 100)
    assert b"a secret" not in there.outgoing()
    here.send(b"a secret" * 100)
    assert b"a secret" not in here.outgoing()


@pytest.mark.parametrize("name", ["worker", "client"])
def test_a_certificate_that_is_not_the_ports_opens_nothing(name: str) -> None:
    another = new_identity(name) if name == "worker" else CLIENT
    assert "certificate" in turned_away(Party(another, SERVER.certificate, server=False))


def test_an_expired_certificate_opens_nothing() -> None:
    expired = new_identity("worker", datetime.datetime(2001, 1, 1, tzinfo=datetime.timezone.utc))
    listening = Party(SERVER, expired.certificate, server=True)
    assert "expired" in turned_away(Party(expired, SERVER.certificate, server=False), listening)


def test_a_certificate_that_a_workers_key_has_signed_opens_nothing() -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    signer = x509.load_pem_x509_certificate(WORKER.certificate.encode())
    key = serialization.load_pem_private_key(WORKER.key.encode(), None)
    other = serialization.load_pem_private_key(CLIENT.key.encode(), None)
    signed = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(signer.subject)
        .public_key(other.public_key())  # type: ignore[arg-type]
        .serial_number(7)
        .not_valid_before(signer.not_valid_before_utc)
        .not_valid_after(signer.not_valid_after_utc)
        .sign(key, hashes.SHA256())  # type: ignore[arg-type]
    )
    pem = signed.public_bytes(serialization.Encoding.PEM).decode()
    assert turned_away(Party(Credentials(pem, CLIENT.key), SERVER.certificate, server=False))


def test_a_peer_without_a_certificate_opens_nothing() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    bare, here = context.wrap_bio(incoming, outgoing), LISTENING.channel(LARGEST)
    with pytest.raises(ssl.SSLWantReadError):
        bare.do_handshake()
    here.receive(outgoing.read())
    incoming.write(here.outgoing())
    bare.do_handshake()
    bare.write(b"\0\0\0\1x")
    with pytest.raises(ChannelError, match="certificate"):
        here.receive(outgoing.read())


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2])
def test_older_versions_of_tls_open_nothing(version: ssl.TLSVersion) -> None:
    hello = client_hello(version)
    here = LISTENING.channel(LARGEST)
    if hello:  # some builds of OpenSSL cannot say it any more
        with pytest.raises(ChannelError):
            here.receive(hello)
    assert not here.proven


def test_an_impostor_is_not_taken_for_the_daemon() -> None:
    impostor = Party(new_identity("server"), WORKER.certificate, server=True).channel(LARGEST)
    there = CALLING.channel(LARGEST)
    there.send(b"a secret")
    impostor.receive(there.outgoing())
    with pytest.raises(ChannelError, match="certificate"):
        there.receive(impostor.outgoing())
    assert not there.proven


def test_a_recorded_session_is_worth_nothing_to_another_one() -> None:
    here, there = LISTENING.channel(LARGEST), CALLING.channel(LARGEST)
    there.send(b"cancel all")
    recorded = [there.outgoing()]
    here.receive(recorded[0])
    there.receive(here.outgoing())
    recorded.append(there.outgoing())
    assert here.receive(recorded[1]) == [b"cancel all"]
    with pytest.raises(ChannelError):  # in the same session
        here.receive(recorded[1])
    again = LISTENING.channel(LARGEST)
    again.receive(recorded[0])
    with pytest.raises(ChannelError):
        again.receive(recorded[1])
    assert not again.proven


@given(st.binary(max_size=2000))
def test_garbage_opens_nothing(data: bytes) -> None:
    for beginning in (b"", client_hello()):
        here = LISTENING.channel(LARGEST)
        with contextlib.suppress(ChannelError):
            assert here.receive(beginning + data) == []
        assert not here.proven


def test_a_handshake_without_end_is_cut_off() -> None:
    here = LISTENING.channel(LARGEST)
    record = b"\x16\x03\x01\x40\x00" + b"\1\0\xff\xff" + bytes(0x4000 - 4)  # a part of a hello of 64 KB
    here.receive(record[:1000])
    with pytest.raises(ChannelError, match="too long"):
        here.receive(record[1000:])


@given(st.data())
def test_a_damaged_byte_ends_the_connection(data: st.DataObject) -> None:
    here, there = connected()
    there.send(b"a message of some length")
    sent = bytearray(there.outgoing())
    sent[data.draw(st.integers(0, len(sent) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with contextlib.suppress(ChannelError):
        assert here.receive(bytes(sent)) == []  # it may wait for more bytes than there are


def test_a_message_that_is_too_large_is_refused_by_its_length() -> None:
    here, there = connected()
    there.send(b"x" * LARGEST)
    assert len(here.receive(there.outgoing())[0]) == LARGEST
    there.send(b"x" * (LARGEST + 1))
    with pytest.raises(ChannelError, match="too large"):
        here.receive(there.outgoing()[:20_000])


@pytest.mark.parametrize(
    ("certificate", "key"),
    [("", WORKER.key), (WORKER.certificate, ""), (WORKER.certificate, CLIENT.key), ("x" * 10_000, "y")],
    ids=["no certificate", "no key", "another key", "too long"],
)
def test_damaged_keys_are_an_error_of_ours(certificate: str, key: str, tmp_path: Path) -> None:
    with pytest.raises(ChannelError, match="damaged"):
        Party(Credentials(certificate, key), SERVER.certificate, server=False)
    with pytest.raises(ChannelError, match="damaged"):
        Party(WORKER, "\N{SNOWMAN}", server=False)


# --- keys with a grant ----------------------------------------------------------------------------


def test_a_key_with_a_grant_is_let_in_and_named_until_it_is_refused() -> None:
    listening = Party(SERVER, CLIENT.certificate, server=True)
    first, second = new_identity("key a 1"), new_identity("key a 2")
    calling = Party(first, SERVER.certificate, server=False)
    turned_away(calling, listening)
    listening.accept(first.certificate)
    listening.accept(second.certificate)
    for own, key in ((first, fingerprint(first.certificate)), (CLIENT, "")):
        here = listening.channel(2 * LARGEST_FROM_KEY)
        there = Party(own, SERVER.certificate, server=False).channel(2 * LARGEST_FROM_KEY)
        here.receive(there.outgoing())
        there.receive(here.outgoing())
        here.receive(there.outgoing())
        assert (here.proven, here.key, there.key) == (True, key, "")
        there.send(b"x" * (LARGEST_FROM_KEY + 1))
        if key:
            with pytest.raises(ChannelError, match="too large"):
                here.receive(there.outgoing())
        else:
            assert here.receive(there.outgoing())
    listening.refuse(first.certificate)
    turned_away(calling, listening)
