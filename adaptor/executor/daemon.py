"""The daemon, for programs: started where none runs, as `adaptor run` does."""

from __future__ import annotations

import threading

from adaptor.cli.daemon_process import ensure_daemon
from adaptor.client.bags import Client

_starting = threading.Lock()


def ensure() -> None:
    """Raises AdaptorError: none runs, and none could be started."""
    with _starting:  # not by two threads at once
        ensure_daemon(None, until_idle=True)


def client() -> Client:
    """A client that starts the daemon again where it has gone."""
    return Client(start=ensure)
