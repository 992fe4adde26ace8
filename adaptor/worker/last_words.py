"""What a worker that leaves without an answer puts down in the pilot's folder for the daemon to find."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from adaptor.protocol.access import write_private
from adaptor.protocol.messages import Result
from adaptor.worker.settings import Settings


def spool_results(settings: Settings, results: list[Result]) -> Path:
    """Write results that were not acknowledged: msgpack of `list[Result]`. Raises OSError."""
    path = settings.directory / f"unsent-{settings.file_node}-{os.getpid()}.msgpack"
    write_private(path, msgspec.msgpack.encode(results))
    return path


def spool_unreachable(settings: Settings, sentence: str) -> Path:
    """Write why no daemon was reached, for a person. Raises OSError."""
    path = settings.directory / f"unreachable-{settings.file_node}.txt"
    write_private(path, f"{sentence}\n".encode())
    return path
