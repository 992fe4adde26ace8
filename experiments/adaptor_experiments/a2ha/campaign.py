"""Running all orders of all schemes, in parallel processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from adaptor_experiments.a2ha.bags import KINDS, optimal_hosts, runtimes
from adaptor_experiments.a2ha.design import Row, Scheme, Settings
from adaptor_experiments.a2ha.simulation import CloudRun
from adaptor_experiments.resumable import gathered

_AT_ONCE = 25  # orders that a process runs before it hands them in


def run_all(
    schemes: Sequence[Scheme], settings: Settings, processes: int, done: Callable[[int], None]
) -> list[Row]:
    """The rows of all runs, in the order of the schemes; `done` gets the number of runs that have ended.

    Raises:
        ReplayError: the measured runtimes cannot be read.
    """
    pieces = [
        (scheme, range(first, min(first + _AT_ONCE, settings.orders)))
        for scheme in schemes
        for first in range(0, settings.orders, _AT_ONCE)
    ]
    return gathered(partial(_run, settings), pieces, processes, done)


def _run(settings: Settings, piece: tuple[Scheme, range]) -> list[Row]:
    scheme, orders = piece
    return [run_order(scheme, settings, order) for order in orders]


def run_order(scheme: Scheme, settings: Settings, order: int) -> Row:
    bag = list(map(float, runtimes(KINDS[scheme.bag], settings.seed, order, settings.demo)))
    run = CloudRun(bag, scheme.terms, scheme.preset, initial=scheme.initial, bought=scheme.bought).finish()
    return Row(
        experiment=scheme.experiment,
        bag=scheme.bag,
        preset=scheme.preset.name,
        bought=scheme.bought,
        creation=scheme.preset.creation_ratio,
        increase=scheme.preset.increase_ratio,
        initial=scheme.initial or 0,
        order=order,
        optimal=optimal_hosts(run.work, scheme.terms),
        **run.figures,
    )
