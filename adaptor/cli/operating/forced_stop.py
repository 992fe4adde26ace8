"""Ending a daemon that does not answer."""

from __future__ import annotations

import signal
import socket
import time

from adaptor.daemon.lock import holder_of
from adaptor.errors import AdaptorError
from adaptor.processes.trees import send, wait_for_death
from adaptor.protocol.state_directory import state_directory

FORCED_GRACE = 10.0
"""Seconds for a daemon to end by itself after SIGTERM; `kill -9` loses nothing either."""


def end_daemon() -> int | None:
    """End the process that holds the lock, whether it answers or not; its process id, None: nobody holds it.

    SIGTERM first, then SIGKILL: pilots and tasks go on, and the next daemon continues from the journal.

    Raises:
        AdaptorError: it is on another machine, is not known by more than its process id, or does not end.
    """
    holder = holder_of(state_directory())
    if holder is None:
        return None
    process = holder.process()
    if process is None:
        if holder_of(state_directory()) is None:
            return None
        raise AdaptorError(
            f"the lock of {state_directory()} is held by {holder}, which is no process of this machine,"
            f" {socket.gethostname()}: run `adaptor daemon stop --force` there"
        )
    # A stopped process gets SIGTERM only when it is continued.
    for number in (signal.SIGTERM, signal.SIGCONT):
        send(process, number)
    if not wait_for_death([process], time.monotonic() + FORCED_GRACE):
        send(process, signal.SIGKILL)
        if not wait_for_death([process], time.monotonic() + FORCED_GRACE):
            raise AdaptorError(
                f"the daemon ({holder}) does not end, not even by SIGKILL: its file system hangs"
            )
    return holder.pid
