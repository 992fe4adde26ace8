"""All bags on all traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from adaptor_experiments.endings.design import Row, bag_of
from adaptor_experiments.endings.place import queues_of
from adaptor_experiments.endings.run import Piece, run_piece
from adaptor_experiments.parallel import in_processes


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    traces: Sequence[Path]
    bags: int
    """On each trace, each at an instant of its own."""
    seed: int = 1


def run_all(settings: Settings, processes: int, done: Callable[[int], None]) -> list[Row]:
    """All forecasts, in the order of the traces and bags; `done` is told of each bag.

    Raises:
        TraceError: a trace cannot be read.
    """
    rows: list[Row] = []
    for place, trace in enumerate(settings.traces):
        processors, queues = queues_of(trace, settings.bags, settings.seed)
        name = trace.name.split(".")[0]
        pieces = [
            Piece(name, processors, queue, number, bag_of(number, settings.seed))
            for number, queue in enumerate(queues, 1000 * place)
        ]
        for some in in_processes(run_piece, pieces, processes):
            rows += some
            done(1)
    return rows
