"""Learning what a bag costs before it is paid for: samples of its tasks on every site (BaTS).

Oprescu, Kielmann, Leahu, "Task Farming in Contrail", slides "Runtime Estimation" and "Compact Sampling".
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import msgspec

from adaptor.budget.errors import BudgetError

REPLICATED = 7
"""Tasks that run on every site, so that the sites can be compared."""
NORMAL_SAMPLE = 30
"""Finished tasks from which a mean is as good as normal (central limit theorem)."""


def sample_size(tasks: int, precision: float = 0.4, confidence: float = 0.97) -> int:
    """Tasks to be sampled, with replacement, so that their mean is precise enough.

    The mean of n draws with replacement from a bag of N lies within `precision` standard deviations of
    the bag's own mean with this confidence when n >= (z / precision)², whatever N; a finite bag needs
    the fewer n' = n N / (n + N - 1) that are different tasks. Never fewer than 30, or all: below that
    the normal distribution does not hold for the mean. The defaults give the 30 of the slides.

    Raises:
        BudgetError: a number that cannot be.
    """
    if tasks < 1:
        raise BudgetError("a bag without tasks has nothing to sample")
    if not (precision > 0 and 0 < confidence < 1):
        raise BudgetError("precision must be above 0 and confidence between 0 and 1")
    draws = (NormalDist().inv_cdf((1 - confidence) / 2) / precision) ** 2
    needed = math.ceil(draws * tasks / (draws + tasks - 1))
    return min(tasks, max(NORMAL_SAMPLE, needed))


class Samples(msgspec.Struct, frozen=True):
    """Which tasks to run where, by their places in the bag."""

    everywhere: tuple[int, ...]
    spread: Mapping[str, tuple[int, ...]]
    """Further ones of each site."""


def compact_samples(tasks: int, sites: Sequence[str], size: int, seed: int) -> Samples:
    """A sample in which 7 tasks run on every site and the rest on one site each, in turn.

    Drawn without replacement, as a task that is drawn twice need not run twice.

    Raises:
        BudgetError: there is no site.
    """
    if not sites:
        raise BudgetError("there is no site to sample on")
    drawn = random.Random(seed).sample(range(tasks), min(size, tasks))  # noqa: S311 - no secret
    rest = drawn[REPLICATED:]
    spread = {site: tuple(rest[place :: len(sites)]) for place, site in enumerate(sites)}
    return Samples(tuple(drawn[:REPLICATED]), spread)
