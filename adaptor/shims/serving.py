"""A process that answers for the commands of one folder, on one machine: what they import is there already.

A child of it waits for the next command, so that no caller waits for a fork. It takes the caller's folder,
variables and open files and does what `python -m adaptor.shims` does, so it may wait and fail as the caller
itself could. Processes of other users, groups and containers get no answer. The process ends after `IDLE`
seconds without a command, when its socket is gone, or when the package was installed again.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

from adaptor.bagfile.scripts.sbatch import SBATCH
from adaptor.errors import AdaptorError
from adaptor.processes.commands import module_command
from adaptor.protocol.state_directory import state_directory
from adaptor.shims.commands import MODULES, run
from adaptor.shims.connecting import prepare
from adaptor.shims.real import RealCommand
from adaptor.shims.rules import Rules, TooLarge, dependencies
from adaptor.shims.small_jobs import SmallJob
from adaptor.shims.start import EXIT, FILES, LENGTH, REAL, TAKEN, descriptor, inside, socket_name

IDLE = 600.0
_LOOK = 20.0  # seconds between two looks at whether it is still of use
_PATIENCE = 10.0  # seconds that a caller may take to say what it wants
_MOMENT = 0.1  # seconds for which the next child waits for what the last one learned
_LONGEST = 4096  # bytes of a path
_WAITING = 1024  # callers that may wait to be heard; more wait to connect
_PEER = struct.Struct("iII")  # SO_PEERCRED: process, user, group
_LATER = (
    "adaptor.cli.daemon_process",
    "adaptor.config.loading",
    "adaptor.bagfile.scripts.values",
    "backends.slurm.questions",
    "encodings.idna",
)
"""Modules that commands import when they need them; the last is for an address."""


def leave_behind(folder: str) -> subprocess.Popen[bytes] | None:
    """Start the process; None: there is one, or the folder is another user's. Commands work without, too."""
    with contextlib.suppress(OSError):
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        if os.fstat(place).st_uid != os.getuid():
            return None
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        lock = os.open(f"{socket_name()}.lock", flags, 0o600, dir_fd=place)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the process inherits it
        return subprocess.Popen(
            module_command(sys.executable, "adaptor.shims.serving", folder, str(lock)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            pass_fds=(lock,),
        )
    return None


def main() -> None:
    folder, lock = sys.argv[1], int(sys.argv[2])
    for module in (*(f"adaptor.shims.{name}" for name in MODULES.values()), *_LATER):
        import_module(module)
    _warm()
    path = inside(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
    listener = _listening(path)
    gc.collect()
    gc.freeze()  # the children copy less
    try:
        _serve(listener, path, lock)
    finally:
        with contextlib.suppress(OSError):
            Path(path).unlink()


def _listening(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    early = Path(f"{path}.new")  # under its name, the socket takes connections
    early.unlink(missing_ok=True)
    os.umask(0o177)
    listener.bind(str(early))
    listener.listen(_WAITING)
    early.replace(path)
    return listener


def _warm() -> None:
    """Read a script, and load OpenSSL: patterns, tables and copies of pages are made with their first use."""
    with contextlib.suppress(AdaptorError, TooLarge):
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        given = SBATCH.table.leading(["--time=1", "--output=%j"])[0]
        SmallJob(b"#!/bin/sh\n", "warm", given, [], Rules(), dependencies(given)).tasks({}, b"")


def _serve(listener: socket.socket, path: str, lock: int) -> None:
    own, source, last = _identity(path), _identity(__file__), time.monotonic()
    lives = os.pipe()  # children that wait see its end
    directory: Path | None = None
    waiting = _next_child(listener, lock, lives, directory)
    while _identity(path) == own and _identity(__file__) == source and time.monotonic() - last < IDLE:
        # Forget children that have ended.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if waiting is None:  # no process more: callers do it alone
            _turn_away(listener)
        elif select.select([waiting], [], [], _LOOK)[0]:
            last = time.monotonic()
            os.read(waiting, 1)
            directory = _directory_of(waiting) or directory
        else:
            continue
        waiting = _next_child(listener, lock, lives, directory)


def _next_child(
    listener: socket.socket, lock: int, lives: tuple[int, int], directory: Path | None
) -> int | None:
    """Fork a child that answers one caller. None: no process more.

    The descriptor can be read when the child has a caller: a byte, then the caller's state directory.
    `directory`: that of the caller before.
    """
    taken = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(taken[0])
        os.close(taken[1])
        return None
    if child:
        os.close(taken[1])
        return taken[0]
    try:
        os.close(lives[1])
        _warm()
        if directory is not None:
            prepare(directory)
        source, connection = _identity(__file__), _accepted(listener, lives[0])
        os.write(taken[1], b"\0")
        listener.close()
        os.close(lock)  # it is the process's, not that of children that wait
        if connection is not None and _identity(__file__) == source and _ours(connection):
            _answer(connection, taken[1])
    finally:
        os._exit(1)


def _directory_of(taken: int) -> Path | None:
    """State directory of the caller; None: the caller has none, or is slow to say what it wants."""
    with open(taken, "rb", buffering=0) as pipe:  # closes it
        name = pipe.read(_LONGEST) if select.select([pipe], [], [], _MOMENT)[0] else b""
    return Path(os.fsdecode(name)) if name else None


def _accepted(listener: socket.socket, lives: int) -> socket.socket | None:
    """The connection of the next caller; None: the process has ended."""
    ready, _, _ = select.select([listener.fileno(), lives], [], [])
    return None if lives in ready else listener.accept()[0]


def _turn_away(listener: socket.socket) -> None:
    """Close the connections of those who call within a second."""
    until = time.monotonic() + 1.0
    while (left := until - time.monotonic()) > 0 and select.select([listener], [], [], left)[0]:
        listener.accept()[0].close()


def _identity(path: str) -> tuple[int, int] | None:
    """Inode and time of a file, which change once it is written again; None: it is gone."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _ours(connection: socket.socket) -> bool:
    """Whether the caller is the same user, with the same group and the same view of the files."""
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    process, user, group = _PEER.unpack(data)
    try:  # a container has another
        same = os.path.samefile(f"/proc/{process}/ns/mnt", "/proc/self/ns/mnt")  # noqa: PTH121
    except OSError:
        return False
    return same and (user, group) == (os.getuid(), os.getgid())


def _answer(connection: socket.socket, taken: int) -> None:
    """Answer a command in the child, which ends with it. `taken`: see `_next_child`."""
    try:
        words = _received(connection)
        connection.sendall(TAKEN)
        connection.settimeout(None)
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        folder, umask, count, *rest = words
        _become_caller(folder, int(umask), rest[2 + int(count) :])
        with contextlib.suppress(AdaptorError, OSError):
            os.write(taken, os.fsencode(state_directory()))
        os.close(taken)
        name, *arguments = rest[1 : 2 + int(count)]
        try:
            _send(connection, EXIT, str(run(name, arguments, Path(rest[0]))))
        except SystemExit as ended:
            _send(connection, EXIT, str(ended.code))
        except RealCommand as real:
            _send(connection, REAL, "\0".join((real.path, *real.words)), real.stdin)
    finally:
        os._exit(1)  # the caller has its answer, or sees that there is none


def _received(connection: socket.socket) -> list[str]:
    """The words of a caller; its open files become those of this process."""
    connection.settimeout(_PATIENCE)
    head, files, _, _ = socket.recv_fds(connection, LENGTH, FILES)
    size = int.from_bytes(head, "big")
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the caller is gone")
        data += part
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    return os.fsdecode(data).split("\0")


def _become_caller(folder: str, umask: int, variables: list[str]) -> None:
    os.chdir(folder)
    os.umask(umask)
    wanted = dict(variable.partition("=")[::2] for variable in variables)
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted.items() - os.environ.items())  # few: most callers have the same
    time.tzset()
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        for number, mode in enumerate(("r", "w", "w"))
    )


def _end_with(connection: socket.socket) -> None:
    """The caller was killed: what it waits for is not wanted any more."""
    connection.recv(1)
    os._exit(1)


def _send(connection: socket.socket, kind: bytes, text: str, file: int | None = None) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    data = kind + os.fsencode(text)
    if file is not None:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor(file))
        connection.sendmsg([data[:1]], [rights])
        data = data[1:]
    connection.sendall(data)


if __name__ == "__main__":
    main()
