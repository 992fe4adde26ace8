"""One of the commands, as the shell starts it: the standard library alone, and of that what starts fast.

Imports are most of what a short command costs. A process that has them (`serving`) does the work: it gets the
words, the variables and the open files of this one. It answers with an exit code, or with the real command,
which this process becomes. Where no process serves, this one becomes `python -m adaptor.shims`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` and `socket` import much
import _socket
import os
import sys

from adaptor.shims.real import (
    PASSED,
    RealCommand,
    callers,
    in_task,
    leave_path,
    pass_on,
    real_is_meant,
    tell,
    with_own_array,
)

TAKEN, EXIT, REAL = b"t", b"e", b"r"
"""The answer: the first as soon as the work may have an effect, then one of the others with its words."""
FILES = 3  # standard input, output and error
LENGTH = 4  # bytes of the request's length before it


def socket_name() -> str:
    """Name of this machine's socket: other machines may see the same folder."""
    return f".{os.uname().nodename}"


def inside(folder: int) -> str:
    """The path of the socket in an open folder: short enough for a socket, wherever the folder is."""
    return f"/proc/self/fd/{folder}/{socket_name()}"


def descriptor(number: int) -> bytes:
    return number.to_bytes(4, sys.byteorder)


def _request(folder: str, name: str, arguments: list[str]) -> bytes:
    umask = os.umask(0)
    os.umask(umask)
    words = [os.getcwd(), str(umask), str(len(arguments)), folder, name, *arguments]  # noqa: PTH109
    words += [f"{variable}={value}" for variable, value in os.environ.items()]
    return os.fsencode("\0".join(words))


def served(folder: str, name: str, arguments: list[str]) -> int | None:
    """The exit code; None: no process serves, and nothing is done.

    Raises RealCommand: it is one for the scheduler.
    """
    said = b""
    files: list[int] = []
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(inside(os.open(folder, os.O_RDONLY | os.O_DIRECTORY)))
        request = _request(folder, name, arguments)
        handed = b"".join(map(descriptor, range(FILES)))
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handed)
        connection.sendmsg([len(request).to_bytes(LENGTH, "big")], [rights])
        connection.sendall(request)
        while True:
            part, more, _, _ = connection.recvmsg(2**16, _socket.CMSG_SPACE(4))
            if not part:
                break
            said += part
            files += [int.from_bytes(data, sys.byteorder) for _, _, data in more]
    except OSError:
        if not said:
            return None
    kind, words = said[1:2], os.fsdecode(said[2:]).split("\0")
    if kind == REAL:
        raise RealCommand(words[0], words[1:], files[0] if files else None)
    if kind == EXIT:
        return int(words[0])
    if said:
        tell(f"{name} ended before its answer; perhaps it was done: see squeue")
    return 1 if said else None


def main() -> None:
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    folder, name, *arguments = sys.argv[1:]
    arguments = with_own_array(os.environ, arguments)
    whole = leave_path()
    again = callers(os.environ) if PASSED in os.environ else []
    try:
        if again or real_is_meant(os.environ, name, arguments):
            pass_on(name, arguments, but=again)
        code = None if in_task(os.environ) else served(folder, name, arguments)
    except RealCommand as real:
        real.become(whole)
    if code is not None:
        os._exit(code)  # nothing here has to be flushed
    from adaptor.processes.commands import module_command

    os.environ["PATH"] = whole
    words = module_command(sys.executable, "adaptor.shims", folder, name, *arguments)
    os.execv(sys.executable, words)  # noqa: S606 (no shell is wanted)
