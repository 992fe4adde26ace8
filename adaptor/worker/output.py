"""The files that take a task's standard output and error."""

from __future__ import annotations

import contextlib
import os

from adaptor.worker.slots import HeldTask

OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def output_paths(held: HeldTask) -> tuple[str, str]:
    """Standard output and error; from the second attempt on, the attempt is part of the name."""
    key = held.key
    stem = f"{held.bag.output}/{key.task}"
    if key.attempt > 1:
        stem = f"{stem}.{key.attempt}"
    return f"{stem}.out", f"{stem}.err"


def empty_outputs(held: HeldTask) -> list[str]:
    """The output files of an attempt that are empty."""
    return [path for path in output_paths(held) if _is_empty(path)]


class SpareFiles:
    """Empty files of ended attempts, renamed for the attempts that start next; the rest is removed.

    Making and removing a file costs far more than a rename (measured on ext4: 500 µs against 10 µs).
    """

    def __init__(self) -> None:
        self._paths: list[str] = []

    def add(self, held: HeldTask) -> None:
        """Call it when no process holds the files of this attempt open."""
        self._paths += empty_outputs(held)

    def give(self, held: HeldTask) -> None:
        """Rename spare files to where the attempt will write."""
        for path in output_paths(held):
            if self._paths and self._paths[-1].startswith(f"{held.bag.output}/"):
                with contextlib.suppress(OSError):  # then the start makes it
                    os.rename(self._paths.pop(), path)  # noqa: PTH104

    def remove(self) -> None:
        """Remove those that no start has used."""
        while self._paths:
            _remove(self._paths.pop())


def remove_empty(held: HeldTask) -> None:
    """Remove the output files of an attempt that are empty."""
    for path in empty_outputs(held):
        _remove(path)


def _is_empty(path: str) -> bool:
    try:
        return os.stat(path).st_size == 0  # noqa: PTH116 (twice for every task: no Path is made)
    except OSError:
        return False


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)  # noqa: PTH108
