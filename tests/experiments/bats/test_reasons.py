"""Why ours differs from the slides: what `printed` and the tables say, by runs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from adaptor.budget.provisioning.menu import menu
from adaptor_experiments.bats.design import SITES, Settings, Way, bag
from adaptor_experiments.bats.ending import TailPhase
from adaptor_experiments.bats.experiment import offers
from adaptor_experiments.bats.sampling import sample
from adaptor_experiments.bats.throughput import Throughput
from tests.experiments.bats.endings import ending

BAGS = range(12)


def mean_seconds(kind, by_machine):
    """By the daemon and by the slides, per cent of the time without a tail phase."""
    ways: tuple[Way, ...] = ("none", "daemon", "stochastic")
    found = []
    for number in BAGS:
        state, times = ending(kind, number, number=number, by_machine=by_machine)
        nothing, *ended = (TailPhase(state, times, way, random.Random(2)).run().seconds for way in ways)
        found.append([100 * each / nothing for each in ended])
    return np.mean(found, axis=0)


def test_the_time_of_the_slides_leaves_out_the_end_of_the_last_tasks():
    """T_e = N / Σ(a / T); the menu promises the same and the end."""
    slides, promised = [], []
    for number in range(8):
        runtimes = bag("normal", Settings(), number)
        times = [[float(each / site.speed) for each in runtimes] for site in SITES]
        draw = random.Random(number)
        sampled = sample(times, draw)
        rest = [task for task in range(len(runtimes)) if task not in sampled.done]
        line = menu(len(rest), offers(sampled.known), 30)[-1]
        fluid = len(rest) / sum(count / sampled.known[name].mean for name, count in line.processors.items())
        state = Throughput(times, rest, line, line.budget + sampled.cost, sampled).run()
        seconds = TailPhase(state, times, "none", draw).run().seconds
        slides.append(seconds / fluid)
        promised.append(seconds / line.seconds.value)
    assert np.median(slides) > 1.04
    assert abs(np.median(promised) - 1) < (np.median(slides) - 1) / 2


@pytest.mark.parametrize("kind", ["levy", "multi-modal"])
def test_the_daemon_gains_more_where_tasks_are_late_by_their_machine(kind):
    daemon, slides = mean_seconds(kind, by_machine=True)
    assert daemon < slides - 2
    daemon, slides = mean_seconds(kind, by_machine=False)
    assert daemon >= slides
