"""Runs as an experiment would leave them, with times as a test wants them."""

from __future__ import annotations

from adaptor_experiments.bats.design import BUDGETS, EVERY_WAY, KINDS
from adaptor_experiments.bats.experiment import Run
from adaptor_experiments.tables import Runs

BAGS, ORDERS = 8, 3


def made_runs(relative, won):
    """`relative(way, bag, order)` in per cent of the time without a tail phase; `won(way)` of 10 replicas."""
    return Runs(
        Run(
            kind=kind,
            bag=bag,
            run=order,
            budget=budget,
            way=way,
            planned=1000.0,
            allowed=100.0,
            sampled=5.0,
            seconds=10.0 * relative(way, bag, order),
            without=1000.0,
            spent=90.0,
            replicas=10 * (way != "none"),
            won=won(way) if way != "none" else 0,
            migrations=0,
            asked=False,
        )
        for kind in KINDS
        for budget in BUDGETS
        for way in EVERY_WAY
        for bag in range(BAGS)
        for order in range(ORDERS)
    )
