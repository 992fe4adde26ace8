"""Pieces of an experiment in parallel processes."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def in_processes(
    run: Callable[[Piece], Result], pieces: Sequence[Piece], processes: int, *, ordered: bool = True
) -> Iterator[Result]:
    """The results, in the order of the pieces or as they come; an error of one ends all."""
    if min(processes, len(pieces)) < 2:
        yield from map(run, pieces)
        return
    # Fresh processes: a fork of one with the threads of a library may hang. Leaving the pool ends them.
    with multiprocessing.get_context("spawn").Pool(processes, _prepare) as pool:
        yield from (pool.imap if ordered else pool.imap_unordered)(run, pieces)


def gathered(
    run: Callable[[Piece], list[Result]], pieces: Sequence[Piece], processes: int, done: Callable[[int], None]
) -> list[Result]:
    """The results of all pieces in their order; `done` gets the number of results as they come."""
    results = []
    for some in in_processes(run, pieces, processes):
        results += some
        done(len(some))
    return results


def _prepare() -> None:
    """An interrupt at the terminal reaches all processes; the first one alone ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # the libraries stay: looking through them each time would take a twentieth of the time
