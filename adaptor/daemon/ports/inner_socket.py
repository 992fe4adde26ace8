"""A listening socket of ZMQ that has no name: only this process can connect to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import zmq.asyncio

from adaptor.errors import AdaptorError
from adaptor.protocol.gate import BACKLOG


class InnerSocket:
    """A Unix socket whose file is gone before anybody is awaited; its inode stays reachable for us.

    Linux: an open file is found below /proc/self/fd even if it has no name any more.
    """

    def __init__(self, router: zmq.asyncio.Socket) -> None:
        """Raises AdaptorError: the temporary folder takes no sockets."""
        try:
            listener, self._handle = _nameless_listener()
        except OSError as error:
            raise AdaptorError(
                f"{tempfile.gettempdir()}: no socket can be made there: {error.strerror}; "
                "name another folder of this machine by $TMPDIR"
            ) from error
        router.setsockopt(zmq.USE_FD, listener.detach())
        router.bind("ipc://inner")  # a label: ZMQ takes the socket that it was given

    async def open(self, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Raises OSError."""
        await asyncio.get_running_loop().create_unix_connection(protocol, f"/proc/self/fd/{self._handle}")

    def close(self) -> None:
        """No further connection can be opened."""
        os.close(self._handle)


def _nameless_listener() -> tuple[socket.socket, int]:
    """A listening Unix socket, and the descriptor by which it is reached. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix="adaptor-"))  # 0700
    inside = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(f"/proc/self/fd/{inside}/socket")  # a path in a socket's address has 107 bytes at most
        listener.listen(BACKLOG)
        return listener, os.open("socket", os.O_PATH | os.O_CLOEXEC, dir_fd=inside)
    except OSError:
        listener.close()
        raise
    finally:
        with contextlib.suppress(OSError):
            os.unlink("socket", dir_fd=inside)
        os.close(inside)
        folder.rmdir()
