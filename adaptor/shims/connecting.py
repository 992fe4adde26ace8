"""A connection to the daemon, made before the caller comes that needs it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from adaptor.client.asking import DaemonConnection
from adaptor.client.bags import Client
from adaptor.protocol.access import KEY_VARIABLE
from adaptor.protocol.state_directory import state_directory
from adaptor.shims.real import tell

_ready: dict[Path, DaemonConnection] = {}


def prepare(directory: Path) -> None:
    """Connect to the daemon of a state directory, if it answers."""
    _ready[directory] = DaemonConnection(directory)
    _ready[directory].connect()


def connected(start: Callable[[], object] | None = None) -> Client:
    """A client of the caller's daemon. `start`: called where none runs."""
    directory = state_directory()
    ready = None if KEY_VARIABLE in os.environ else _ready.pop(directory, None)
    return Client(directory, start=start, say=tell, connection=ready)
