"""The pieces of an experiment, run in parallel processes; and a file for each finished one, to go on from."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import connection
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from adaptor_simulation.files import ReplayError, naming, write_whole

Some = TypeVar("Some")
Result = TypeVar("Result")


class Piece(Protocol):
    """Work of one process at a time."""

    @property
    def name(self) -> str:
        """Name of its file, without the ending."""


AnyPiece = TypeVar("AnyPiece", bound=Piece)


def in_processes(run: Callable[[Some], Result], pieces: Sequence[Some], processes: int) -> Iterator[Result]:
    """The results, in the order of the pieces; an error of one ends all.

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
        yield from pool.map(run, pieces)
    except BrokenProcessPool as error:
        raise ReplayError("a process was killed (is there too little memory?); try again") from error
    finally:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()  # what runs after an error or an interrupt would be waited for
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    """An interrupt at the terminal reaches all processes; the first one alone ends the others, even if it is
    killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()  # the libraries stay: looking through them each time would take a twentieth of the time


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)  # its results would be lost


def all_rows(run: Callable[[Some], Iterable[Result]], pieces: Sequence[Some], processes: int) -> list[Result]:
    """The rows of all pieces, in their order."""
    return [row for rows in in_processes(run, pieces, processes) for row in rows]


def resumed(
    run: Callable[[AnyPiece], list[Result]],
    pieces: Sequence[AnyPiece],
    kind: type[Result],
    folder: Path,
    settings: msgspec.Struct,
    processes: int,
    done: Callable[[int], None],
) -> list[Result]:
    """The rows of all pieces, in their order; those with a file in the folder are not run again.

    A file appears whole or not at all, and its name says which piece it is: nothing counts twice.

    Args:
        kind: of the rows.
        settings: all that the rows of a piece depend on besides its name.
        done: gets the number of finished pieces; those with a file count at once.

    Raises:
        ReplayError: the folder holds rows of other settings, a file is damaged or cannot be written, or what
            `run` raises. What is finished stays.
    """
    with naming(folder):
        (folder / "samples").mkdir(parents=True, exist_ok=True)
        kept, content = folder / "settings.json", msgspec.json.encode(settings)
        if not kept.exists():
            write_whole(kept, content)
        elif kept.read_bytes() != content:
            raise ReplayError(f"{folder} holds results of other settings ({kept.name}); take another folder")
    paths = [folder / "samples" / f"{piece.name}.msgpack" for piece in pieces]
    missing = [(piece, path) for piece, path in zip(pieces, paths, strict=True) if not path.exists()]
    done(len(pieces) - len(missing))
    for _ in in_processes(partial(_keep, run), missing, processes):
        done(1)
    decoder = msgspec.msgpack.Decoder(list[kind])  # type: ignore[valid-type]
    return [row for path in paths for row in _read(path, decoder)]


def _keep(run: Callable[[AnyPiece], list[Result]], piece: tuple[AnyPiece, Path]) -> None:
    """Run a piece and write its rows; not as JSON, which has no NaN."""
    write_whole(piece[1], msgspec.msgpack.encode(run(piece[0])))


def _read(path: Path, decoder: msgspec.msgpack.Decoder[list[Result]]) -> list[Result]:
    try:
        return decoder.decode(path.read_bytes())
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        raise ReplayError(f"{path}: {error}; remove it, and it is made again") from error
