"""One question to the daemon, one answer: over TLS, by the certificates of the state directory."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from adaptor import __version__, api
from adaptor.api.question import A
from adaptor.errors import AdaptorError, NoDaemonError
from adaptor.protocol.access import (
    CLIENT_ACCESS,
    KEY_VARIABLE,
    LostAccessError,
    host_and_port,
    key_access,
    read_access,
)
from adaptor.protocol.channel import LARGEST_FROM_DAEMON, Channel, ChannelError, Party
from adaptor.protocol.state_directory import state_directory

if TYPE_CHECKING:
    from adaptor.daemon.lock import Holder

CONNECT_TIMEOUT = 1.0  # seconds for one address to accept a connection
HANDSHAKE_TIMEOUT = 5.0  # seconds for the listener to prove that it is our daemon
BUSY_TIMEOUT = 25.0  # seconds more if our daemon lives on this machine and is not stopped: it is busy
ANSWER_TIMEOUT = 30.0  # seconds from a question to its answer
SCHEDULERS_TIMEOUT = 120.0  # the same for a question for which the daemon asks its schedulers first
SETTLING = 5.0  # seconds that a daemon may take to start to answer, or to end, before it counts as hung
_PART = 2**16
"""Bytes received at a time: for more, memory is fetched from the kernel and given back each time."""
_PAUSE = 0.1  # seconds until a connection is tried again that was refused, or closed in its handshake


TAKE_OVER = (
    f"this command of version {__version__} can only show and end it. To go on with this version:"
    " adaptor daemon restart (pilots and tasks continue)"
)
"""The way to go on with a daemon of another version."""


_agreed: set[Path] = set()  # state directories whose daemon has answered this program in its own `PROTOCOL`


class NoAnswerError(AdaptorError):
    """The daemon is running and did not answer in time."""


class UnreachableDaemonError(NoAnswerError):
    """The daemon lives on another machine, and no address of it answers here."""


class LeavingDaemonError(NoAnswerError):
    """The daemon closed the connection before it answered: it ends, or begins again."""


class HungDaemonError(NoAnswerError):
    """The daemon lives, and not even its port answers: it is stopped or hung, or as below."""


class OtherVersionError(AdaptorError):
    """The daemon has another version, which cannot be asked this, or whose answer cannot be understood."""


class StartingDaemonError(HungDaemonError):
    """The daemon lives and is not stopped, and nothing listens at its port: it is starting or ending."""


def ask(question: api.Question[A], timeout: float = ANSWER_TIMEOUT) -> A:
    """The daemon's answer; `timeout` is seconds from question to answer.

    A daemon that begins again closes its connections: what changes nothing is asked once more.

    Raises:
        NoDaemonError: none runs.
        NoAnswerError: one does not answer in time.
        UsageError: the daemon says that the question is at fault.
        AdaptorError: the daemon could not serve it; the access file is damaged or open to others.
    """
    connection = DaemonConnection(state_directory())
    try:
        return connection.ask(question, timeout)
    except LeavingDaemonError:
        if question.writes or isinstance(question, api.Stop):
            raise
        return connection.ask(question, timeout)
    finally:
        connection.close()


class DaemonConnection:
    """A connection to the daemon of a state directory, for one question at a time and for one thread.

    It is made with the first question. After any failure it is made again with the next one.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._socket: socket.socket | None = None
        self._channel: Channel | None = None
        self._address = ""
        self._arrived: deque[bytes] = deque()
        self._posted: api.Question[Any] | None = None  # question that was sent ahead of `ask`
        self._unsent = b""
        self._follows = False  # whether the daemon goes on to answer the last question

    def ask(self, question: api.Question[A], timeout: float = ANSWER_TIMEOUT) -> A:
        """The answer; `timeout` is seconds from question to answer.

        Raises:
            NoDaemonError: none runs.
            NoAnswerError: one does not answer in time, or disconnected.
            UsageError: the daemon says that the question is at fault.
            OtherVersionError: it has another version, which cannot be asked this.
            AdaptorError: it could not serve it; the access file is damaged or open to others.
        """
        try:
            posted, self._posted = self._posted is question, None
            if not posted and self._socket is not None and _is_readable(self._socket):
                self.close()  # the daemon has left since the last question
            if self._socket is None or self._channel is None:
                self._socket, self._channel = self._open()
                posted = False
            connected, channel = self._socket, self._channel
            may_ask = channel.agreed or question.any_version
            if not posted:
                channel.send(api.encode_question(question if may_ask else api.GetDaemon()))
            data = self._answer(connected, channel, timeout)
        except BaseException:
            self.close()  # a late answer must not be taken for that to the next question
            raise
        if not may_ask:
            replaced = self._directory in _agreed
            raise OtherVersionError(other_version(_decoded(api.GetDaemon(), data), replaced=replaced))
        if channel.agreed:
            _agreed.add(self._directory)
        return _decoded(question, data)

    def connect(self) -> None:
        """Connect ahead of the first question; what fails, `ask` tries again."""
        with contextlib.suppress(AdaptorError, OSError):
            self._socket, self._channel = self._reach()

    def post(self, question: api.Question[Any]) -> None:
        """Send ahead, in any thread, what is asked next. What cannot be sent without waiting, `ask` sends."""
        connected, channel = self._socket, self._channel
        if connected is None or channel is None or not channel.agreed or _is_readable(connected):
            return
        channel.send(api.encode_question(question))
        self._posted, self._unsent = question, channel.outgoing()
        connected.settimeout(0.0)
        with contextlib.suppress(OSError):  # if the connection has broken, `ask` makes another
            self._unsent = self._unsent[connected.send(self._unsent) :]

    def follow(self, question: api.GetEvents, timeout: float) -> list[api.BagEvents]:
        """The next answer to a question that follows bags; what `after` it says is asked where the connection
        is new, and only there. Nothing else can be asked on it. Raises as `ask` does."""
        if not self._follows:
            answer = self.ask(question, timeout)
            self._follows = True
            return answer
        assert self._socket is not None
        assert self._channel is not None
        try:
            data = self._answer(self._socket, self._channel, timeout)
        except BaseException:
            self.close()
            raise
        return _decoded(question, data)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = self._channel = None
        self._follows, self._posted, self._unsent = False, None, b""
        self._arrived.clear()

    def _open(self) -> tuple[socket.socket, Channel]:
        """Waits for a daemon that is starting or ending.

        Raises:
            NoDaemonError: none runs.
            HungDaemonError, AccessError: it does not answer, or its access file cannot be used.
        """
        until = time.monotonic() + SETTLING
        while True:
            try:
                return self._reach()
            except (StartingDaemonError, LostAccessError):
                if KEY_VARIABLE in os.environ or time.monotonic() >= until:
                    raise
            except NoDaemonError:
                if time.monotonic() >= until or not _hands_over(self._directory):
                    raise
            time.sleep(_PAUSE)

    def _reach(self) -> tuple[socket.socket, Channel]:
        """Connect to the daemon. Raises as `_open` does."""
        key = os.environ.get(KEY_VARIABLE, "")  # a name or an access file; else the user's own key
        path = Path(key) if os.sep in key else self._directory / (key_access(key) if key else CLIENT_ACCESS)
        try:
            access = read_access(path)
        except LostAccessError as problem:
            if path.name != CLIENT_ACCESS:
                raise
            silence = no_daemon(self._directory, problem=str(problem))
            if isinstance(silence, NoDaemonError) or not path.exists():  # the next one writes another
                raise silence from problem
            raise LostAccessError(
                f"{problem}; the daemon that runs writes it again within seconds: if not, end it: adaptor"
                " daemon stop --force"
            ) from problem
        party = Party(access.own, access.server, server=False, protocol=api.PROTOCOL)
        listens = False
        for address in access.addresses:
            if (connected := _connected(address)) is None:
                continue
            listens = True
            reached = self._greeted(address, connected, party)
            if reached is not None:
                self._address = address
                return reached
            if (holder := _holder(self._directory)) is not None and holder.local:
                break  # its other addresses lead to the same process
        raise no_daemon(self._directory, listens=listens)

    def _greeted(
        self, address: str, connected: socket.socket | None, party: Party
    ) -> tuple[socket.socket, Channel] | None:
        """A connection whose handshake is done; None: the listener is not our daemon."""
        until = time.monotonic() + HANDSHAKE_TIMEOUT
        while connected is not None:
            channel = party.channel(LARGEST_FROM_DAEMON)
            try:
                if self._shake_hands(connected, channel, until):
                    return connected, channel
                until = 0.0
            except OSError:
                pass  # perhaps others flood the port, and the daemon closes the oldest connections
            except BaseException:
                connected.close()
                raise
            connected.close()
            if time.monotonic() >= until:
                return None
            time.sleep(_PAUSE)
            connected = _connected(address)
        return None

    def _shake_hands(self, connected: socket.socket, channel: Channel, until: float) -> bool:
        """Whether the listener proves in time to be our daemon. Raises OSError: it closes the connection."""
        waited = False
        while not channel.proven:
            try:
                _exchange(connected, channel, until)
            except TimeoutError:
                holder = _holder(self._directory)
                if waited or holder is None or not holder.busy:
                    return False
                until, waited = time.monotonic() + BUSY_TIMEOUT, True
            except ChannelError:
                return False
        return True

    def _answer(self, connected: socket.socket, channel: Channel, timeout: float) -> bytes:
        """Send what waits, and receive one message, if none has arrived before.

        Raises NoAnswerError: the daemon did not answer in time, or disconnected.
        """
        until = time.monotonic() + timeout
        try:
            if not self._arrived:
                unsent, self._unsent = self._unsent, b""
                self._arrived += _exchange(connected, channel, until, unsent)
            while not self._arrived:
                self._arrived += _exchange(connected, channel, until)
        except TimeoutError as error:
            raise NoAnswerError(
                f"the daemon at {self._address} did not answer within {timeout:g} s; is it stopped?"
            ) from error
        except (OSError, ChannelError) as error:
            raise LeavingDaemonError(
                f"the daemon at {self._address} disconnected before it answered; try again: adaptor status"
            ) from error
        return self._arrived.popleft()


def _decoded(question: api.Question[A], data: bytes) -> A:
    """Decode an answer. Raises OtherVersionError: the data is no answer of this version."""
    try:
        return api.decode_answer(question, data)
    except msgspec.DecodeError as error:
        raise OtherVersionError(
            f"cannot understand the daemon's answer ({error}): it may have another version than this command"
            f" ({__version__}); end it: adaptor daemon stop"
        ) from error


def other_version(daemon: api.DaemonView, *, replaced: bool = False) -> str:
    """The message about a daemon of another version, with the way out; `replaced`: it follows one of ours."""
    who = f"the daemon on {daemon.host} (process {daemon.pid}) has version {daemon.version}"
    if not replaced:
        return f"{who}; {TAKE_OVER}"
    return (
        f"{who} now, and this program still has version {__version__}: start the program again; its bags"
        " continue"
    )


def _exchange(connected: socket.socket, channel: Channel, until: float, unsent: bytes = b"") -> list[bytes]:
    """Send what the channel has to send, behind what is `unsent`, and receive once: the messages that are
    whole then.

    Raises:
        TimeoutError: nothing came until this time, monotonic seconds.
        OSError, ChannelError: the peer closed the connection, or is not our daemon.
    """
    connected.settimeout(max(0.001, until - time.monotonic()))
    if outgoing := unsent + channel.outgoing():
        connected.sendall(outgoing)
    connected.settimeout(max(0.001, until - time.monotonic()))
    data = connected.recv(_PART)
    if not data:
        raise ConnectionError("closed")
    return channel.receive(data)


def _is_readable(connected: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return bool(poll.poll(0))


def _connected(address: str) -> socket.socket | None:
    """Open a connection to an address; None: nothing listens there."""
    try:
        connected = socket.create_connection(host_and_port(address), timeout=CONNECT_TIMEOUT)
    except (OSError, ValueError):
        return None
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def no_daemon_text(directory: Path) -> str:
    """The message that no process holds the lock."""
    from adaptor.daemon.jobs.record import following, read_jobs

    with contextlib.suppress(AdaptorError):
        if (jobs := read_jobs(directory)) is not None:
            return f"no daemon is running for {directory} now: {following(jobs)}; see: adaptor daemon submit"
    return f"no daemon is running for {directory}; start one: adaptor daemon start"


def no_daemon(directory: Path, *, listens: bool = False, problem: str = "") -> NoDaemonError | NoAnswerError:
    """The error for a question without an answer: there is no daemon, or one that lives and is silent.

    Args:
        listens: whether a port of its access file accepts connections.
        problem: why there is no such port to try.
    """
    holder = _holder(directory)
    if holder is None:
        return NoDaemonError(no_daemon_text(directory))
    if holder.host and not holder.local:
        from adaptor.daemon.lock import SILENCE

        return UnreachableDaemonError(
            f"the daemon on {holder.host} cannot be reached from here (process {holder.pid}): run this"
            f" command on {holder.host}, or end the daemon there: adaptor daemon stop; if {holder.host} is"
            f" down, try again in {SILENCE:.0f} s"
        )
    kind = StartingDaemonError if holder.busy and not listens else HungDaemonError
    because = problem or "nothing reaches its port"
    return kind(
        f"the daemon of {directory} ({holder}) exists but does not answer: it is stopped, hung, or just"
        f" starting, or {because}; see {directory / 'daemon.log'}, or end it: adaptor daemon stop --force"
    )


def check_own_key(what: str) -> None:
    """Raises AdaptorError: the environment names a key with a grant, which does not cover `what`."""
    if key := os.environ.get(KEY_VARIABLE, ""):
        raise AdaptorError(
            f"the key {key!r} of ${KEY_VARIABLE} cannot {what}; use your own key: unset {KEY_VARIABLE}"
        )


def _hands_over(directory: Path) -> bool:
    from adaptor.daemon.jobs.record import hands_over  # only where no daemon answers

    return hands_over(directory)


def _holder(directory: Path) -> Holder | None:
    from adaptor.daemon.lock import holder_of  # only where no daemon answers

    return holder_of(directory)


T = TypeVar("T")

PATIENCE = 60.0  # seconds to wait for a daemon that has answered before
NOTICE = 2.0  # seconds without an answer after which the user gets a message
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


class Outage:
    """An outage: from the first question without an answer until the daemon answers or patience ends."""

    def __init__(
        self,
        patience: float | None = None,
        *,
        was_there: bool = False,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Args:
        patience: seconds; None: `PATIENCE`.
        was_there: whether a daemon has answered before.
        say: gets one line, if the outage lasts.
        """
        self._patience = PATIENCE if patience is None else patience
        self._was_there = was_there
        self._say = say
        self._since: float | None = None  # begin of the outage (monotonic); None: the daemon answers
        self._pause = _FIRST_PAUSE
        self._told = False

    def answered(self) -> None:
        """The daemon has answered: the next silence is another outage."""
        self._was_there, self._since, self._pause, self._told = True, None, _FIRST_PAUSE, False

    def pause(self, silence: NoDaemonError | NoAnswerError) -> float:
        """Seconds until the next question. Raises `silence`: patience ends, or there never was a daemon."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        self._was_there = self._was_there or isinstance(silence, NoAnswerError)
        away = now - self._since
        if not self._was_there or away >= self._patience:
            raise silence
        if away >= NOTICE:
            self.say_once(f"adaptor: the daemon does not answer; waiting up to {self._patience:g} s")
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        return pause

    def say_once(self, text: str) -> None:
        """Inform the user, if nothing was said of this outage."""
        if not self._told:
            self._told = True
            self._say(text)

    def wait_out(self, ask: Callable[[], T]) -> T:
        """The answer, asked for until it comes. Raises NoDaemonError, NoAnswerError, as `pause` does."""
        while True:
            try:
                return ask()
            except (NoDaemonError, NoAnswerError) as silence:
                time.sleep(self.pause(silence))
