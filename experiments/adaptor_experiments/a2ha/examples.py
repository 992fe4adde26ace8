"""What follows from the bags alone: the example of 2008 with equal tasks, and what the estimators predict."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from adaptor.budget.accounting.tariffs import begun_units
from adaptor.budget.provisioning.presets import Preset
from adaptor_experiments.a2ha.bags import IMAGE, WHOLE_HOUR, Seconds, runtimes
from adaptor_experiments.a2ha.design import Settings
from adaptor_experiments.a2ha.simulation import CloudRun

_MOST = 40  # orders that are enough for a smooth line


class EqualTasks(msgspec.Struct, frozen=True):
    """A bag of tasks of one known runtime, in seconds, on a fixed number of hosts."""

    count: int
    runtime: float

    def speedup(self, hosts: int) -> float:
        """Over one host, where each host takes the next task when it has ended one."""
        return self.count / math.ceil(self.count / hosts)

    def charged(self, hosts: int) -> int:
        """Begun hours of all hosts: some have run one task more than the others."""
        least, more = divmod(self.count, hosts)
        return sum(
            number * begun_units(run * self.runtime, WHOLE_HOUR.unit)
            for number, run in ((hosts - more, least), (more, least + 1))
        )


FIVE_MINUTES = EqualTasks(300, 300.0)
"""2008, §1 and Fig. 1: 25 hours of work."""
BEST = math.ceil(FIVE_MINUTES.count * FIVE_MINUTES.runtime / WHOLE_HOUR.unit)
"""Hosts that are charged for the work alone."""


def predicted(settings: Settings) -> Seconds:
    """Hosts predicted from the first tasks: 5 %, 50 % and 95 % of the orders, by tasks (Fig. 4b)."""
    orders = np.array([runtimes(IMAGE, settings.seed, order) for order in range(settings.orders)])
    tasks = orders.shape[1]
    means = np.cumsum(orders, axis=1) / np.arange(1, tasks + 1)
    found: Seconds = np.quantile(means * tasks / IMAGE.terms.usable, [0.05, 0.5, 0.95], axis=0)
    return found


def bought_with(creation: float, increase: float, settings: Settings) -> Seconds:
    """Hosts bought so far by finished tasks, mean of the orders (Fig. 6b)."""
    preset = Preset(name="growth", creation_ratio=creation, increase_ratio=increase)
    lines = []
    for order in range(min(settings.orders, _MOST)):
        run = CloudRun(runtimes(IMAGE, settings.seed, order).tolist(), IMAGE.terms, preset)
        run.finish()
        lines.append(run.history)
    means: Seconds = np.array(lines, np.float64).mean(axis=0)
    return means
