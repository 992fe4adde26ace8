"""One question to the daemon, one answer: over ZMQ with CURVE, by the keys of the state directory."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import zmq

from adaptor.errors import AdaptorError, NoDaemonError, UsageError
from adaptor.protocol import control
from adaptor.protocol.access import CLIENT_ACCESS, Access, read_access
from adaptor.protocol.state_directory import state_directory

if TYPE_CHECKING:
    from adaptor.daemon.lock import Holder

CONNECT_TIMEOUT = 1.0
"""Seconds for one address to accept a connection."""
HANDSHAKE_TIMEOUT = 5.0
"""Seconds for the listener to prove that it is our daemon."""
BUSY_TIMEOUT = 25.0
"""Seconds more if our daemon lives on this machine and is not stopped: it is busy."""
ANSWER_TIMEOUT = 30.0

_Kind = TypeVar("_Kind", bound=msgspec.Struct)


class NoAnswerError(AdaptorError):
    """The daemon is running and did not answer in time."""


class HungDaemonError(NoAnswerError):
    """The daemon lives, and not even its port answers: it is stopped, hung, or just starting or ending."""


def ask(question: control.Question, kind: type[_Kind], timeout: float = ANSWER_TIMEOUT) -> _Kind:
    """The daemon's answer, which must be of the kind named; `timeout` is seconds from question to answer.

    Raises:
        NoDaemonError: none runs.
        NoAnswerError: one does not answer in time.
        UsageError: the daemon says that the question is at fault.
        AdaptorError: the daemon could not serve it; the access file is damaged or open to others.
    """
    directory = state_directory()
    path = directory / CLIENT_ACCESS
    if not path.exists():
        raise no_daemon(directory)
    access = read_access(path)
    message = control.encode(question)
    for address in access.addresses:
        if _listens(address):
            data = _exchange(address, access, message, timeout, directory)
            if data is not None:
                return expected(_decoded(data), kind)
            if (holder := _holder(directory)) is not None and holder.local:
                break  # its other addresses lead to the same process
    raise no_daemon(directory)


def no_daemon(directory: Path) -> NoDaemonError | HungDaemonError:
    """What to raise if there was no answer: there is no daemon, or one that lives and is silent."""
    holder = _holder(directory)
    if holder is None:
        return NoDaemonError(f"no daemon is running for {directory}; start one: adaptor daemon start")
    return HungDaemonError(
        f"the daemon of {directory} ({holder}) lives but does not answer: it is stopped, hung, or just"
        f" starting, or nothing reaches its port; see {directory / 'daemon.log'}, or end it: adaptor daemon"
        " stop --force"
    )


def _holder(directory: Path) -> Holder | None:
    from adaptor.daemon.lock import holder_of  # only where nobody answers

    return holder_of(directory)


def _listens(address: str) -> bool:
    """Notices a refused connection at once; ZMQ itself would silently try again."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT):
            return True
    except (OSError, ValueError):
        return False


def _exchange(address: str, access: Access, message: bytes, timeout: float, directory: Path) -> bytes | None:
    """The answer's bytes; None if the listener is not our daemon."""
    channel: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    with channel:
        channel.linger = 0
        channel.immediate = True  # Ready to send only when the handshake is done.
        channel.ipv6 = True
        channel.curve_serverkey = access.server_key.encode()
        channel.curve_publickey = access.public_key.encode()
        channel.curve_secretkey = access.secret_key.encode()
        channel.connect(address)
        if not channel.poll(int(HANDSHAKE_TIMEOUT * 1000), zmq.POLLOUT):
            holder = _holder(directory)
            if holder is None or not holder.busy:
                return None
            if not channel.poll(int(BUSY_TIMEOUT * 1000), zmq.POLLOUT):
                return None
        _await_answer(channel, message, timeout, address)
        return bytes(channel.recv())


def _await_answer(channel: zmq.Socket[bytes], message: bytes, timeout: float, address: str) -> None:
    """Raises NoAnswerError: the daemon did not answer in time, or disconnected."""
    with channel.get_monitor_socket(zmq.EVENT_DISCONNECTED) as disconnected:
        channel.send(message)
        poller = zmq.Poller()
        poller.register(channel, zmq.POLLIN)
        poller.register(disconnected, zmq.POLLIN)
        ready = dict(poller.poll(int(timeout * 1000)))
        channel.disable_monitor()
    if channel in ready:
        return
    if disconnected in ready:
        raise NoAnswerError(
            f"the daemon at {address} disconnected before it answered; try again: adaptor status"
        )
    raise NoAnswerError(f"the daemon at {address} did not answer within {timeout:g} s; is it stopped?")


def _decoded(data: bytes) -> control.Answer:
    try:
        return control.decode_answer(data)
    except msgspec.DecodeError as error:
        raise AdaptorError(
            f"the daemon has another version ({error}); run: adaptor daemon stop, then start"
        ) from error


def expected(answer: control.Answer, kind: type[_Kind]) -> _Kind:
    """The answer as the kind that was asked for.

    Raises:
        UsageError, AdaptorError: it is a Failure, or of another kind.
    """
    if isinstance(answer, control.Failure):
        raise UsageError(answer.message) if answer.usage else AdaptorError(answer.message)
    if not isinstance(answer, kind):
        raise AdaptorError(f"the daemon answered {type(answer).__name__}, not {kind.__name__}")
    return answer
