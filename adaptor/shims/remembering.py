"""Files of the state directory in which the commands remember from one call to the next."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from adaptor.protocol.state_directory import state_directory

T = TypeVar("T")


def folder(name: str = "") -> Path:
    """Path in the commands' folder of the state directory."""
    return state_directory() / "shims" / name


def remembered(path: Path, kind: type[T]) -> T | None:
    """Content of a file; None: it is not there, or another version wrote it."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """For one process at a time."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
