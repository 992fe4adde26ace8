"""Bags at the start of their tail phase."""

from __future__ import annotations

import random

from adaptor.budget.provisioning.menu import menu
from adaptor_experiments.bats.design import SITES, Settings, bag
from adaptor_experiments.bats.experiment import offers
from adaptor_experiments.bats.sampling import sample
from adaptor_experiments.bats.throughput import Throughput

SMALL = Settings(bags=1, runs=2, tasks=250)


def ending(kind, seed=1, line=-1, number=0, by_machine=False):
    """The state, and the runtimes by site; `by_machine`: long on one machine says nothing of another."""
    drawn = [bag(kind, SMALL, number + 100 * by_machine * place) for place in range(len(SITES))]
    times = [
        [float(each / site.speed) for each in runtimes] for site, runtimes in zip(SITES, drawn, strict=True)
    ]
    draw = random.Random(seed)
    sampled = sample(times, draw)
    rest = [task for task in range(SMALL.tasks) if task not in sampled.done]
    chosen = menu(len(rest), offers(sampled.known), 30)[line]
    order = draw.sample(rest, len(rest))
    budget = chosen.budget + sampled.cost
    return Throughput(times, order, chosen, budget, sampled).run(), times
