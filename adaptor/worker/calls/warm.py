"""A Python process of the user's that runs calls, as its worker sees it."""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import socket
from collections.abc import Mapping

import msgspec

from adaptor.bag_spec import Interpreter
from adaptor.resources import TaskSize
from adaptor.worker.calls.server import ANSWER, CALL
from adaptor.worker.execution import Child, start_python
from adaptor.worker.output import SHORTAGES, CannotStartError, ShortageError, TaskFiles, output_names
from adaptor.worker.slots import HeldTask

INLINE = 64 * 1024
"""Bytes of a pickled result that go over the link; a larger one is written into the output folder."""
_BUFFER = 256 * 1024  # bytes of the socket: a call has to fit, since the worker never waits
_PART = 16 * 1024
"""Bytes read at a time: memory for more is fetched from the kernel and given back for each answer."""
_BOOT = """\
import os, socket
def take(size):
    data = b""
    while len(data) < size:
        data += os.read(0, size - len(data)) or os._exit(1)
    return data
names = {"__name__": "adaptor_calls"}
connection = socket.socket(fileno=os.dup(0))
for _ in range(2):
    exec(compile(take(int(take(8))), "<adaptor calls>", "exec"), names)
names["serve"](connection)
"""
_SOURCES = ("process_state.py", "server.py")
_OF_ONE_CALL = ("ADAPTOR_TASK_ID", "ADAPTOR_ATTEMPT", "ADAPTOR_DEADLINE")
"""Variables that the process does not begin with: what it leaves running belongs to no single task."""


class CallPlace(msgspec.Struct, frozen=True):
    """The key of a process: what it is started for, and what it keeps."""

    bag: int
    size: TaskSize
    """Size of its calls: the process keeps what they have left in memory, and the threads that its variables
    name."""
    cpus: tuple[int, ...]
    gpus: tuple[int, ...]

    @classmethod
    def of(cls, held: HeldTask) -> CallPlace:
        return cls(held.key.bag, held.task, held.cpus, held.gpus)


class CallAnswer(msgspec.Struct, frozen=True):
    refused: bool  # whether the process can run no call; `error` says why
    error: str
    value: bytes
    cpu: float  # seconds, children included
    peak: int  # bytes of resident memory of the process itself
    alone: bool  # whether the call has left no child
    reaped: bool  # whether children of the call have ended; such a one may have left its own to the worker
    kept: bool
    """True if it has written nothing, so that the process keeps its files for the next call; else they have
    its names now."""


class KeptFiles(msgspec.Struct, frozen=True):
    """The open files of a process for its calls."""

    cwd: str
    names: tuple[str, str] | None
    """Names of the output files until one call has them for good; None: the output is dropped."""


class WarmProcess:
    """One process; it runs one call at a time."""

    def __init__(self, place: CallPlace, child: Child, connection: socket.socket) -> None:
        self.place = place
        self.child = child
        self.connection = connection
        self.cut_off = False  # whether its connection has ended
        self.held: HeldTask | None = None  # its last call
        self.kept: KeptFiles | None = None
        self.memory = 0  # bytes of resident memory, at most, in its last call
        self._got = bytearray()

    def send(self, held: HeldTask, environment: Mapping[str, str], files: TaskFiles | None = None) -> None:
        """Have a call run.

        Args:
            environment: what is its own among its variables.
            files: what it starts with; None: what the process has kept.

        Raises CannotStartError: the process does not take it.
        """
        key = held.key
        call: dict[str, object] = {
            "environment": environment,
            "output": held.bag.output,
            "attempt": f"{key.task}.{key.attempt}",
            "names": output_names(key),
        }
        self.held = held
        if files is not None:
            names = None if files.unnamed is None else files.unnamed.names
            self.kept = KeptFiles(held.cwd, names)
            call["files"] = names or ()
        try:
            self._send(call, held.lease.call or b"", files.handles if files is not None else [])
        except OSError as error:
            raise CannotStartError(f"its Python process does not take the call: {error.strerror}") from error

    def answer(self) -> CallAnswer | None:
        """The answer, once it is there as a whole."""
        with contextlib.suppress(BlockingIOError):
            while not (self.cut_off or self._is_whole()):
                try:
                    part = self.connection.recv(_PART)
                except ConnectionError:
                    part = b""
                self.cut_off = not part
                self._got += part
        if not self._is_whole():
            return None
        refused, error, value, cpu, peak, alone, reaped, kept = ANSWER.unpack_from(self._got)
        middle, end = ANSWER.size + error, ANSWER.size + error + value
        text = self._got[ANSWER.size : middle].decode(errors="replace")
        found = CallAnswer(refused, text, bytes(self._got[middle:end]), cpu, peak, alone, reaped, kept)
        del self._got[:end]
        return found

    def _is_whole(self) -> bool:
        if len(self._got) < ANSWER.size:
            return False
        _, error, value, *_ = ANSWER.unpack_from(self._got)
        return bool(len(self._got) >= ANSWER.size + error + value)

    def end(self) -> None:
        """The process ends when it notices."""
        self.connection.close()

    def _send(self, told: Mapping[str, object], payload: bytes, files: list[int]) -> None:
        text = json.dumps(told).encode()
        head = CALL.pack(len(text), len(payload))
        size = len(head) + len(text) + len(payload)
        parts = [head, text, payload]
        sent = socket.send_fds(self.connection, parts, files) if files else self.connection.sendmsg(parts)
        if sent < size:
            raise BlockingIOError(None, "it is too long")

    @classmethod
    def start(
        cls, held: HeldTask, interpreter: Interpreter, environment: Mapping[str, str], files: TaskFiles
    ) -> WarmProcess:
        """Start a process; what it says before its first call goes to that call's output.

        Raises:
            CannotStartError: the interpreter cannot be executed.
            ShortageError: the caller may try again later.
        """
        ours, theirs = _pair()
        changed = (held.lease.environment or {}).keys()
        own = {name: value for name, value in environment.items() if name not in changed}
        own.update({name: value for name, value in held.bag.environment.items() if name in changed})
        for name in _OF_ONE_CALL:
            own.pop(name, None)
        try:
            with theirs:
                words = [*interpreter.command, "-c", _BOOT]
                child = start_python(held, words, own, files, theirs.fileno())
            made = cls(CallPlace.of(held), child, ours)
            made._begin(interpreter, held.bag.output)
        except BaseException:
            ours.close()
            raise
        return made

    def _begin(self, interpreter: Interpreter, output: str) -> None:
        sources = [pkgutil.get_data(__package__, name) or b"" for name in _SOURCES]
        told = {
            "version": interpreter.version,
            "path": list(interpreter.path),
            "inline": INLINE,
            "output": output,
        }
        with contextlib.suppress(ConnectionError):  # it has ended already, which its end will say
            for source in sources:
                self.connection.sendall(f"{len(source):8}".encode() + source)
            self._send(told, interpreter.initializer, [])


def _pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets: the worker's, which never blocks, and the process's. Raises ShortageError."""
    try:
        ours, theirs = socket.socketpair()
    except OSError as error:
        if error.errno in SHORTAGES:
            raise ShortageError(os.strerror(error.errno or 0)) from error
        raise
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
    ours.setblocking(False)
    return ours, theirs
