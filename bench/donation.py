"""Donation: one step with 5,000 nodes; what a local job and a reclaim wait for, on a real Slurm.

Alone: `python -m bench.donation`; it takes three minutes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import partial

from adaptor.donation.deciding import decide
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import (
    DonatedUse,
    DonationDemand,
    DonationRules,
    DonationState,
    NodeUse,
    NodeView,
)
from adaptor.resources import TaskSize
from bench import local_wait, reclaims
from bench.stopwatch import median_seconds
from bench.table import Row, show, timed

NODES = 5000
NOW = 1e6


def rows() -> Iterator[Row]:
    yield from _steps()
    yield from reclaims.rows()
    yield from local_wait.rows()


def _steps() -> Iterator[Row]:
    for used, busy in ((0.0, 0.0), (0.2, 0.7), (1.0, 0.0)):
        view = _view(used, busy)
        hazard = IdleLearner().hazard
        took = median_seconds(partial(decide, view, hazard))
        what = f"donation step, {NODES:,} nodes, {used:.0%} used, {busy:.0%} with local jobs"
        yield timed(what, took, 0.010)


def _view(used: float, busy: float) -> DonationState:
    draw = random.Random(1)  # noqa: S311 (not for secrets)
    # Jobs have several nodes, which come free together.
    planned = [NOW + draw.uniform(0, 86400) for _ in range(200)]
    freed = [NOW - draw.uniform(0, 86400) for _ in range(500)]
    nodes = []
    for number in range(NODES):
        kind = draw.random()
        nodes.append(
            NodeView(
                name=f"n{number}",
                processors=64,
                use=NodeUse.TAKEN if used <= kind < used + busy else NodeUse.IDLE,
                since=draw.choice(freed),
                planned=draw.choice(planned) if draw.random() < 0.5 else math.inf,
                donated=DonatedUse(since=NOW - 60, busy=64) if kind < used else None,
            )
        )
    demands = tuple(
        DonationDemand(waiting=1_000_000, task=TaskSize(processors=cpus), needs=600.0) for cpus in (1, 4)
    )
    return DonationState(now=NOW, nodes=tuple(nodes), rules=DonationRules(), demands=demands)


if __name__ == "__main__":
    show("Donation", rows())
