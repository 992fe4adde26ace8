"""One question to the daemon, one answer: over ZMQ with CURVE, by the keys of the state directory."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import zmq

from adaptor import api
from adaptor.api.question import A
from adaptor.errors import AdaptorError, NoDaemonError
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


class NoAnswerError(AdaptorError):
    """The daemon is running and did not answer in time."""


class UnreachableDaemonError(NoAnswerError):
    """The daemon lives on another machine, and no address of it answers here."""


class HungDaemonError(NoAnswerError):
    """The daemon lives, and not even its port answers: it is stopped, hung, or just starting or ending."""


def ask(question: api.Question[A], timeout: float = ANSWER_TIMEOUT) -> A:
    """The daemon's answer; `timeout` is seconds from question to answer.

    Raises:
        NoDaemonError: none runs.
        NoAnswerError: one does not answer in time.
        UsageError: the daemon says that the question is at fault.
        AdaptorError: the daemon could not serve it; the access file is damaged or open to others.
    """
    connection = Connection(state_directory())
    try:
        return connection.ask(question, timeout)
    finally:
        connection.close()


class Connection:
    """A connection to the daemon of a state directory, for one question at a time and for one thread.

    It is made with the first question. After any failure it is made anew with the next one.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._channel: zmq.Socket[bytes] | None = None
        self._monitor: zmq.Socket[bytes] | None = None
        self._address = ""

    def ask(self, question: api.Question[A], timeout: float = ANSWER_TIMEOUT) -> A:
        """The answer; `timeout` is seconds from question to answer.

        Raises:
            NoDaemonError: none runs.
            NoAnswerError: one does not answer in time, or disconnected.
            UsageError: the daemon says that the question is at fault.
            AdaptorError: it could not serve it, or has another version; the access file is damaged or open to
                others.
        """
        message = api.encode_question(question)
        try:
            channel, monitor = self._opened()
            channel.send(message)
            self._await_answer(channel, monitor, timeout)
            data = channel.recv()
        except BaseException:
            self.close()  # a late answer must not be taken for that to the next question
            raise
        return _decoded(question, data)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.disable_monitor()
            if self._monitor is not None:
                self._monitor.close(0)
            self._channel.close(0)
        self._channel = self._monitor = None

    def _opened(self) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
        if self._monitor is not None and self._monitor.poll(0):
            self.close()  # the daemon has left since the last question
        if self._channel is None or self._monitor is None:
            self._open()
        assert self._channel is not None, "it was opened"
        assert self._monitor is not None, "it was opened"
        return self._channel, self._monitor

    def _open(self) -> None:
        """Raises NoDaemonError, HungDaemonError, AccessError."""
        path = self._directory / CLIENT_ACCESS
        if not path.exists():
            raise no_daemon(self._directory)
        access = read_access(path)
        for address in access.addresses:
            if _listens(address):
                self._channel = self._greeted(address, access)
                if self._channel is not None:
                    self._address = address
                    self._monitor = self._channel.get_monitor_socket(zmq.EVENT_DISCONNECTED)
                    return
                if (holder := _holder(self._directory)) is not None and holder.local:
                    break  # its other addresses lead to the same process
        raise no_daemon(self._directory)

    def _greeted(self, address: str, access: Access) -> zmq.Socket[bytes] | None:
        """A socket whose handshake is done; None: the listener is not our daemon."""
        channel: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        try:
            channel.linger = 0
            channel.immediate = True  # Ready to send only when the handshake is done.
            channel.ipv6 = True
            channel.curve_serverkey = access.server_key.encode()
            channel.curve_publickey = access.public_key.encode()
            channel.curve_secretkey = access.secret_key.encode()
            channel.connect(address)
            if channel.poll(int(HANDSHAKE_TIMEOUT * 1000), zmq.POLLOUT):
                return channel
            holder = _holder(self._directory)
            if holder is not None and holder.busy and channel.poll(int(BUSY_TIMEOUT * 1000), zmq.POLLOUT):
                return channel
        except BaseException:
            channel.close()
            raise
        channel.close()
        return None

    def _await_answer(self, channel: zmq.Socket[bytes], monitor: zmq.Socket[bytes], timeout: float) -> None:
        """Raises NoAnswerError: the daemon did not answer in time, or disconnected."""
        poller = zmq.Poller()
        poller.register(channel, zmq.POLLIN)
        poller.register(monitor, zmq.POLLIN)
        ready = dict(poller.poll(int(timeout * 1000)))
        if channel in ready:
            return
        if monitor in ready:
            raise NoAnswerError(
                f"the daemon at {self._address} disconnected before it answered; try again: adaptor status"
            )
        raise NoAnswerError(
            f"the daemon at {self._address} did not answer within {timeout:g} s; is it stopped?"
        )


def no_daemon(directory: Path) -> NoDaemonError | NoAnswerError:
    """What to raise if there was no answer: there is no daemon, or one that lives and is silent."""
    holder = _holder(directory)
    if holder is None:
        return NoDaemonError(f"no daemon is running for {directory}; start one: adaptor daemon start")
    if holder.host and not holder.local:
        return UnreachableDaemonError(
            f"the daemon on {holder.host} cannot be reached from here (process {holder.pid}): run this"
            f" command on {holder.host}, or end the daemon there: adaptor daemon stop"
        )
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


def _decoded(question: api.Question[A], data: bytes) -> A:
    try:
        return api.decode_answer(question, data)
    except msgspec.DecodeError as error:
        raise AdaptorError(
            f"the daemon has another version ({error}); run: adaptor daemon stop, then start"
        ) from error
