"""Errors of a replay; files of results: whole or not at all, named where they are at fault."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adaptor.errors import UsageError
from adaptor.private_files import write_atomically


class ReplayError(UsageError):
    """A replay that is impossible as asked; the message says why."""


class TraceError(ReplayError):
    """A trace is at fault; the message names the file and, where there is one, the line."""


@contextmanager
def naming(path: Path, kind: type[ReplayError] = ReplayError) -> Iterator[None]:
    """Raise an error of the system within as one of this kind that names the path.

    Raises:
        ReplayError: or the kind that is given, in place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: {error.strerror or error}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all, with the folders above it.

    Raises:
        ReplayError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content, temporary=part)
