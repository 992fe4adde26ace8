"""Runs calls, one after the other, in a process of the user's own Python; ends when its worker is gone.

A worker sends this source to the process (`warm`), so it imports nothing of the adaptor. The folder, standard
output and standard error of the first call come as open files; a call that writes nothing leaves them to the
next one. Only this process unpickles a call.
"""

from __future__ import annotations

import array
import contextlib
import errno
import importlib.util
import json
import os
import pickle
import socket
import stat
import struct
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # there, its source is run before this one
    from adaptor.worker.calls.process_state import CallFiles, CallMemory, Variables, used

CALL = struct.Struct("!II")  # before each message to this process: the lengths of its JSON and of the payload
ANSWER = struct.Struct("!?IIdQ???")
"""Head of each answer: refused, the lengths of the error and of the value, CPU seconds, peak bytes, alone,
reaped, kept."""
_MOST_FILES = 4
"""File descriptors with a call: its folder, standard output and error, the folder of these two if they have
no names yet."""
INLINE, FILE = b"v", b"V"
"""First byte of a payload: what follows is the pickle, or the name of a file in the output folder with it."""
VALUE, ERROR, ERROR_OF_CHILDREN, TEXT, UNPREPARED = b"v", b"e", b"c", b"t", b"i"
"""First byte of an answer, as `adaptor.protocol.messages` says."""
_LONGEST_ERROR = 500
_PART = 64 * 1024  # bytes received at a time


class Refused(Exception):
    """The process can run no call."""


def serve(connection: socket.socket) -> None:
    """Run calls until the connection ends."""
    messages = Messages(connection)
    received = messages.next()
    if received is None:
        return
    terms, initializer, _ = received
    try:
        _prepare(terms)
    except Refused as refusal:
        _send(connection, b"", error=str(refusal), refused=True)
        return
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    own, memory = os.getpid(), CallMemory()
    files, variables = CallFiles(null), Variables()
    broken = _initialized(initializer, terms["output"])
    while (received := messages.next()) is not None:
        call, payload, handles = received
        if handles:
            files.take(handles, call["files"])
        files.enter()
        variables.set(call["environment"])
        memory.begin()
        before, children = used()
        answer, error = broken or _run(payload, call, terms["inline"], children)
        if os.getpid() != own:  # the call has forked, and this is the child
            os._exit(0)
        after, children_after = used()
        files.leave()
        alone, reaped = not _has_children(), children_after != children
        kept = alone and not reaped and files.unused(call["names"])
        if not kept:
            try:
                files.give(call["names"])
            except OSError as failed:
                answer, error = _failed(f"{call['output']}/{failed.filename2}: the output is lost", failed)
        _send(
            connection,
            answer,
            error=error,
            cpu=max(0.0, after - before),
            peak=memory.peak(),
            alone=alone,
            reaped=reaped,
            kept=kept,
        )
        memory.rest()


def _prepare(terms: dict[str, Any]) -> None:
    """Set the path for modules. Raises Refused: another Python, or a library is missing."""
    version = ".".join(map(str, sys.version_info[:2]))
    host = os.uname().nodename
    if version != terms["version"]:
        raise Refused(
            f"{sys.executable} is Python {version} on {host} and was {terms['version']} where the calls were"
            " made; give the Executor a python= that is the same on all nodes"
        )
    sys.path[:] = terms["path"]
    missing = [name for name in ("cloudpickle", "tblib") if importlib.util.find_spec(name) is None]
    if missing:
        raise Refused(
            f"{sys.executable} on {host} has no {' and no '.join(missing)}:"
            " python -m pip install 'request-adaptor[executor]'"
        )


def _initialized(initializer: bytes, folder: str) -> tuple[bytes, str] | None:
    """Run the initializer, if there is one. Returns the answer and the error of all calls if it raises."""
    if not initializer:
        return None
    try:
        function, args, kwargs = pickle.loads(_read(initializer, folder))  # noqa: S301
        function(*args, **kwargs)
    except BaseException as raised:
        raised.__traceback__ = raised.__traceback__ and raised.__traceback__.tb_next
        return UNPREPARED + _as_texts(raised), _one_line(raised)
    return None


class Messages:
    """The worker's messages; it waits for the answer to one call before it sends the next."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._got = bytearray()
        self._files = array.array("i")

    def next(self) -> tuple[dict[str, Any], bytes, list[int]] | None:
        """The header, the payload and the files; None: the connection has ended."""
        while (end := self._end()) > len(self._got):
            if not self._receive():
                return None
        size, _ = CALL.unpack_from(self._got)
        middle = CALL.size + size
        told, payload = json.loads(self._got[CALL.size : middle].decode()), bytes(self._got[middle:end])
        del self._got[:end]
        files: list[int] = []
        if "files" in told:  # they may have arrived together with the message before
            files = self._files.tolist()
            del self._files[:]
        return told, payload, files

    def _end(self) -> int:
        """Bytes of the next message, or at least."""
        return CALL.size + sum(CALL.unpack_from(self._got)) if len(self._got) >= CALL.size else CALL.size

    def _receive(self) -> bool:
        room = socket.CMSG_LEN(_MOST_FILES * self._files.itemsize)
        try:
            part, ancillary, _, _ = self._connection.recvmsg(_PART, room, socket.MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return False
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self._files.frombytes(data)
        self._got += part
        return bool(part)


def _send(
    connection: socket.socket,
    answer: bytes,
    *,
    error: str = "",
    refused: bool = False,
    cpu: float = 0.0,
    peak: int = 0,
    alone: bool = False,
    reaped: bool = False,
    kept: bool = False,
) -> None:
    text = error.encode(errors="replace")
    with contextlib.suppress(ConnectionError):
        head = ANSWER.pack(refused, len(text), len(answer), cpu, peak, alone, reaped, kept)
        connection.sendall(head + text + answer)


def _run(payload: bytes, call: dict[str, Any], inline: int, children: tuple[int, int]) -> tuple[bytes, str]:
    """The answer, and the error in one line; empty: there was none. `children`: before it."""
    error = ""
    try:
        function, args, kwargs = pickle.loads(_read(payload, call["output"]))  # noqa: S301
        kind, data = VALUE, _dumps(function(*args, **kwargs))
    except BaseException as raised:
        raised.__traceback__ = raised.__traceback__ and raised.__traceback__.tb_next
        error = _one_line(raised)
        kind, data = _pickled_error(raised)
        if kind == ERROR and used()[1] != children:
            kind = ERROR_OF_CHILDREN
    if len(data) <= inline:
        return kind + data, error
    name = f"{call['attempt']}.result"
    try:
        _write(call["output"], name, data)
    except OSError as failed:
        return _failed(f"{call['output']}/{name}: the result cannot be written", failed)
    return kind.upper() + name.encode(), error


def _failed(what: str, why: OSError) -> tuple[bytes, str]:
    """The answer and the error of a call whose result or output cannot be kept."""
    text = f"{what}: {why.strerror}"
    return TEXT + pickle.dumps(("OSError", text, "")), text


def _read(payload: bytes, folder: str) -> bytes:
    if payload[:1] == INLINE:
        return payload[1:]
    path = os.path.join(folder, payload[1:].decode())  # noqa: PTH118
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:  # noqa: PTH123 (a descriptor)
        status = os.fstat(handle)
        if status.st_uid != os.geteuid() or not stat.S_ISREG(status.st_mode):
            raise PermissionError(errno.EPERM, "not a file of this user's", path)
        return file.read()


def _write(folder: str, name: str, data: bytes) -> None:
    """A private file that is whole or not there."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        temporary = f".{name}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=opened)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(temporary, flags, 0o600, dir_fd=opened), "wb") as file:  # noqa: PTH123
            file.write(data)
        os.rename(temporary, name, src_dir_fd=opened, dst_dir_fd=opened)
    finally:
        os.close(opened)


def _dumps(value: Any) -> bytes:
    """Functions and classes of `__main__` by value, which only cloudpickle can."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        import cloudpickle

        return bytes(cloudpickle.dumps(value))


def _pickled_error(error: BaseException) -> tuple[bytes, bytes]:
    """The kind of the answer and its pickle, which can be read again."""
    try:
        from tblib import pickling_support

        pickling_support.install(error)
        data = _dumps(error)
        if isinstance(pickle.loads(data), BaseException):  # noqa: S301 (its own)
            return ERROR, data
    except Exception:  # noqa: S110 (some exceptions can be pickled and not be read again)
        pass
    return TEXT, _as_texts(error)


def _as_texts(error: BaseException) -> bytes:
    """The pickle of its class, its first line and its traceback."""
    lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return pickle.dumps((type(error).__name__, _one_line(error), lines))


def _one_line(error: BaseException) -> str:
    try:
        text = str(error).partition("\n")[0]
    except Exception:
        text = ""
    name = type(error).__name__
    return (f"{name}: {text}" if text else name)[:_LONGEST_ERROR]


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
