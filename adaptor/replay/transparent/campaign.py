"""Running the pieces that are not there yet, in parallel processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adaptor.replay.parallel import in_processes
from adaptor.replay.transparent.design import Piece
from adaptor.replay.transparent.sample import Outcome, run_piece
from adaptor.replay.transparent.store import Store


def run_missing(
    wanted: Sequence[Piece], store: Store, processes: int, done: Callable[[int], None]
) -> list[Outcome]:
    """Run each piece that the store does not have, and return the outcomes of all.

    `done` is told how many pieces are finished, those that were there at once.

    Raises:
        ReplayError: a trace is at fault, or a result cannot be written. What is finished stays.
    """
    missing = [_Task(store, piece) for piece in wanted if not store.has(piece)]
    done(len(wanted) - len(missing))
    for _ in in_processes(_Task.run, missing, processes):
        done(1)
    return [outcome for piece in wanted for outcome in store.read(piece)]


class _Task:
    """A piece whose result is written where it is made: a slow one before it holds nothing up."""

    def __init__(self, store: Store, piece: Piece) -> None:
        self._store, self._piece = store, piece

    def run(self) -> None:
        self._store.add(self._piece, run_piece(self._piece))
