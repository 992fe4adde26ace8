"""Ending a daemon, and making sure that it has gone."""

from __future__ import annotations

import contextlib
import os
import socket
import time

from adaptor.cli.client import ask
from adaptor.errors import AdaptorError, NoDaemonError
from adaptor.protocol import control

PATIENCE = 60.0
"""Seconds for a daemon to leave; cancelling its pilots may take a slow scheduler's time."""


def stop_daemon(pilots: bool) -> int:
    """End the daemon (`pilots`: with its pilots) and wait until it has gone; its process id.

    Raises:
        NoDaemonError: none runs.
        AdaptorError: it does not end.
    """
    daemon = ask(control.GetDaemon(), control.Daemon).daemon
    ask(control.Stop(pilots=pilots), control.Stopping)
    local = daemon.host == socket.gethostname()
    deadline = time.monotonic() + PATIENCE
    while _process_runs(daemon.pid) if local else _answers():
        if time.monotonic() > deadline:
            where = f"process {daemon.pid} on {daemon.host}"
            raise AdaptorError(f"the daemon ({where}) was told to end and still runs after {PATIENCE:g} s")
        time.sleep(0.05)
    return daemon.pid


def _process_runs(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        # A private daemon is our own child, and stays in the process table until it is waited for.
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # The number belongs to someone else by now.
        return False
    return True


def _answers() -> bool:
    try:
        ask(control.GetDaemon(), control.Daemon)
    except NoDaemonError:
        return False
    return True
