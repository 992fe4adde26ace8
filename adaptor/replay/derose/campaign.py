"""Running the samples that are not there yet, in parallel processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from adaptor.replay.derose.design import Settings, Workload
from adaptor.replay.derose.sample import Outcome, load, run_sample
from adaptor.replay.derose.store import Store
from adaptor.replay.errors import ReplayError
from adaptor.replay.parallel import in_processes


class Piece(msgspec.Struct, frozen=True):
    """One sample of one trace: what one process does at a time."""

    workload: Workload
    path: Path
    settings: Settings
    sample: int


def pieces(workloads: Sequence[Workload], traces: Path, settings: Settings, samples: int) -> list[Piece]:
    """All samples, those of all traces in turn.

    Raises:
        ReplayError: a trace is not there.
    """
    paths = {workload: traces / f"{workload.file}.swf.gz" for workload in workloads}
    for workload, path in paths.items():
        if not path.is_file():
            raise ReplayError(
                f"{path}: no such trace; `adaptor trace fetch {workload.file} --folder {traces}` gets it"
            )
    return [
        Piece(workload, path, settings, sample)
        for sample in range(samples)
        for workload, path in paths.items()
    ]


def run_missing(wanted: list[Piece], store: Store, processes: int, done: Callable[[], None]) -> None:
    """Run each piece that the store does not have; `done` is called after each.

    Raises:
        ReplayError: a trace is at fault, or a result cannot be written. What is finished stays.
    """
    missing = [piece for piece in wanted if not store.has(piece.workload, piece.sample)]
    for piece, outcomes in in_processes(_run, missing, processes, ordered=False):
        store.add(piece.workload, piece.sample, outcomes)
        done()


def _run(piece: Piece) -> tuple[Piece, list[Outcome]]:
    jobs = load(piece.path, piece.workload.processors)
    return piece, run_sample(piece.workload, jobs, piece.settings, piece.sample)
