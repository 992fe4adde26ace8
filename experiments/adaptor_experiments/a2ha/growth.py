"""How predictions and purchases grow with the finished tasks: Figs 4b and 6b of 2011."""

from __future__ import annotations

import numpy as np

from adaptor.budget.provisioning.presets import Preset
from adaptor_experiments.a2ha.bags import IMAGE, runtimes
from adaptor_experiments.a2ha.design import Settings
from adaptor_experiments.a2ha.drawn import Seconds
from adaptor_experiments.a2ha.simulation import CloudRun

_MOST = 40
"""Orders that are enough for a smooth line."""


def predicted(settings: Settings) -> tuple[Seconds, Seconds, Seconds]:
    """Hosts predicted from the mean of the first tasks: 5 %, 50 % and 95 % of the orders, by tasks."""
    orders = np.array(
        [runtimes(IMAGE, settings.seed, order, settings.demo) for order in range(settings.orders)]
    )
    tasks = orders.shape[1]
    means = np.cumsum(orders, axis=1) / np.arange(1, tasks + 1)
    low, middle, high = np.quantile(means * tasks / IMAGE.terms.usable, [0.05, 0.5, 0.95], axis=0)
    return low, middle, high


def bought_with(creation: float, increase: float, settings: Settings) -> Seconds:
    """Hosts bought so far by finished tasks, mean of the orders."""
    preset = Preset(name="growth", creation_ratio=creation, increase_ratio=increase)
    lines = []
    for order in range(min(settings.orders, _MOST)):
        bag = list(map(float, runtimes(IMAGE, settings.seed, order, settings.demo)))
        run = CloudRun(bag, IMAGE.terms, preset).finish()
        lines.append([moment.hosts for moment in run.moments])
    means: Seconds = np.mean(np.array(lines, np.float64), axis=0)
    return means
