"""Bags on the queues of traces, and the forecasts on the way."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence

import msgspec

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.model import Limits
from adaptor_experiments.forecasts.row import Row, rows_of
from adaptor_experiments.forecasts.site_run import CheckedSite, submitted
from adaptor_experiments.forecasts.trace_queues import QueueAt, TraceFile, queues_of

_GIVEN_UP = 4 * 86400  # seconds after which a bag is left out
_MOMENTS = (0.0, 0.1, 0.5, 0.9)  # shares of the tasks that have ended when a forecast is judged

KINDS: dict[str, Callable[[random.Random], float]] = {
    "alike": lambda draw: max(0.1, draw.gauss(1.0, 0.2)),
    "log-normal": lambda draw: draw.lognormvariate(-0.32, 0.8),
    "two kinds": lambda draw: (5.0 if draw.random() < 0.1 else 0.5) * max(0.2, draw.gauss(1.05, 0.15)),
    "sorted file": lambda draw: draw.lognormvariate(-0.18, 0.6),
}
"""Runtimes with a mean of about 1."""
_TASKS = (50, 200, 800)
_MEANS = (60.0, 300.0, 1200.0)


def drawn(kind: str, draw: random.Random, tasks: int) -> list[float]:
    """Runtimes of a kind; those of a sorted file begin with the shortest, as of files by their size."""
    found = [KINDS[kind](draw) for _ in range(tasks)]
    return sorted(found) if kind == "sorted file" else found


def bag_of(number: int, seed: int) -> tuple[str, list[int], float | None]:
    """Kind, runtimes in the order of the file (whole seconds), and what its user says that a task takes.

    The kinds by turns; every second bag comes with a hint, which is as wrong as a guess is.
    """
    draw = random.Random(f"{seed}-{number}")  # noqa: S311
    kind = list(KINDS)[number % len(KINDS)]
    tasks, mean = draw.choice(_TASKS), draw.choice(_MEANS)
    runtimes = [max(1, round(mean * each)) for each in drawn(kind, draw, tasks)]
    true = sum(runtimes) / tasks
    hint = true * math.exp(draw.gauss(0.0, 0.4)) if number // len(KINDS) % 2 == 0 else None
    return kind, runtimes, hint


class Piece(msgspec.Struct, frozen=True, eq=False):
    """A bag on the queue of a trace."""

    trace: str
    processors: int
    queue: QueueAt
    number: int
    seed: int


def pieces(traces: Sequence[TraceFile], bags: int, seed: int) -> Iterator[Piece]:
    """Bags on each trace, each at an instant of its own. Raises TraceError: a trace cannot be read."""
    for place, trace in enumerate(traces):
        loaded = trace.load()
        for number, queue in enumerate(queues_of(loaded, bags, seed), 1000 * place):
            yield Piece(trace.name, loaded.processors, queue, number, seed)


def run_piece(piece: Piece) -> list[Row]:
    """The forecasts of a bag at the moments; none if the bag never ends."""
    kind, runtimes, hint = bag_of(piece.number, piece.seed)
    site = CheckedSite(
        tariff=Tariff(price_explicit=1.0, price_donated=1.0),
        processors=piece.processors,
        limits=Limits(max_pending_requests=4, max_proc=max(1, piece.processors // 4), max_tr=4 * 3600),
        time_resolution=60,
        initial_tr=3600.0,
        poll=60.0,
        jobs=piece.queue.jobs,
        shares=piece.queue.shares,
    )
    run = submitted(runtimes, site, time=hint, pays=False, replicas=0, foresees=False)
    moments = {math.ceil(share * len(runtimes)): f"{share:.0%}" for share in _MOMENTS}
    outcome = run.run(list(moments), _GIVEN_UP)
    if not outcome.ended:
        return []
    known = {"where": piece.trace, "bag": kind, "number": piece.number, "tasks": len(runtimes)}
    return rows_of(outcome, moments, hint=hint is not None, instant=float(piece.queue.instant), **known)
