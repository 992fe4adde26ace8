"""The pieces of an experiment, run in parallel processes; and a file for each finished one, to go on from."""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from adaptor_simulation.files import ReplayError, naming, write_whole

Some = TypeVar("Some")
Result = TypeVar("Result")


def in_processes(
    run: Callable[[Some], Result], pieces: Sequence[Some], processes: int, *, ordered: bool = True
) -> Iterator[Result]:
    """The results, in the order of the pieces or as they come; an error of one ends all.

    Raises:
        ReplayError: a process was killed.
    """
    if min(processes, len(pieces)) < 2:
        yield from map(run, pieces)
        return
    others = set(multiprocessing.active_children())
    # Fresh processes: a fork of one with the threads of a library may hang.
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _prepare)
    try:
        if ordered:
            yield from pool.map(run, pieces)
        else:
            yield from (done.result() for done in as_completed([pool.submit(run, piece) for piece in pieces]))
    except BrokenProcessPool as error:
        raise ReplayError("a process was killed (is there too little memory?); try again") from error
    finally:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()  # what runs after an error or an interrupt would be waited for
        pool.shutdown(cancel_futures=True)


def gathered(
    run: Callable[[Some], list[Result]], pieces: Sequence[Some], processes: int, done: Callable[[int], None]
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


Outcome = TypeVar("Outcome")


class Piece(Protocol):
    """What one process does at a time."""

    @property
    def name(self) -> str:
        """Of its file, without the ending."""


AnyPiece = TypeVar("AnyPiece", bound=Piece)


class Store(Generic[Outcome]):
    """A piece's file appears whole or not at all, and its name says which it is: nothing counts twice."""

    def __init__(self, folder: Path, settings: msgspec.Struct, kind: type[Outcome]) -> None:
        """Open the folder, made where it does not exist; `kind`: of the outcomes, which are kept as JSON.

        Raises:
            ReplayError: it holds results of other settings, or cannot be written.
        """
        self.folder = folder
        self._parts = folder / "samples"
        self._decoder: msgspec.json.Decoder[list[Outcome]] = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
        with naming(folder):
            self._parts.mkdir(parents=True, exist_ok=True)
            path, content = folder / "settings.json", msgspec.json.encode(settings)
            if not path.exists():
                write_whole(path, content)
            elif path.read_bytes() != content:
                told = f"{folder} holds results of other settings ({path.name}); take another folder"
                raise ReplayError(told)

    def has(self, piece: Piece) -> bool:
        return self._path(piece).exists()

    def add(self, piece: Piece, outcomes: Sequence[Outcome]) -> None:
        """Raises ReplayError: the file cannot be written."""
        write_whole(self._path(piece), msgspec.json.encode(outcomes))

    def read(self, pieces: Sequence[Piece]) -> list[Outcome]:
        """The outcomes of finished pieces, in their order. Raises ReplayError: a file is damaged."""
        return [outcome for piece in pieces for outcome in self._read(self._path(piece))]

    def _read(self, path: Path) -> list[Outcome]:
        try:
            return self._decoder.decode(path.read_bytes())
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise ReplayError(f"{path}: {error}; remove it, and it is made again") from error

    def _path(self, piece: Piece) -> Path:
        return self._parts / f"{piece.name}.json"


def run_missing(
    run: Callable[[AnyPiece], list[Outcome]],
    wanted: Sequence[AnyPiece],
    store: Store[Outcome],
    processes: int,
    done: Callable[[int], None],
) -> None:
    """Run each piece that the store does not have, in `processes` processes.

    `done` gets the number of finished pieces; those in the store count at once.

    Raises:
        ReplayError: what `run` raises, or a result cannot be written. What is finished stays.
    """
    missing = [piece for piece in wanted if not store.has(piece)]
    done(len(wanted) - len(missing))
    for piece, outcomes in in_processes(partial(_run, run), missing, processes, ordered=False):
        store.add(piece, outcomes)
        done(1)


def _run(run: Callable[[AnyPiece], list[Outcome]], piece: AnyPiece) -> tuple[AnyPiece, list[Outcome]]:
    return piece, run(piece)
