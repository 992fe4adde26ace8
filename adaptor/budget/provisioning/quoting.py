"""A quote: which tasks run as a sample, what it says of each site, and what the rest then costs (BaTS)."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from statistics import NormalDist

import msgspec

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.menu import menu
from adaptor.budget.provisioning.menu_line import Line
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.task_time import TaskTime

REPLICATED = 7  # tasks that run on every site, so that the sites can be compared
NORMAL_SAMPLE = 30  # finished tasks from which a mean is as good as normal (central limit theorem)


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
    """Tasks to run on each site, by their places in the bag."""

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


class SiteRelation(msgspec.Struct, frozen=True):
    """The runtime on one site as a linear function of that on another, g(x) = a f(x) + b."""

    slope: float
    offset: float

    def __call__(self, runtime: float) -> float:
        return max(0.0, self.slope * runtime + self.offset)


def regression(known: Sequence[float], wanted: Sequence[float]) -> SiteRelation:
    """The line through the runtimes of the same tasks on two sites, by least squares.

    Where the tasks are all equally long, or longer there means shorter here, the ratio of the means
    stands in: so few points then say no more.

    Raises:
        BudgetError: there is no task that ran on both.
    """
    if not known or len(known) != len(wanted):
        raise BudgetError("two sites can be compared only by tasks that ran on both")
    x, y = sum(known) / len(known), sum(wanted) / len(wanted)
    spread = sum((runtime - x) ** 2 for runtime in known)
    common = sum((one - x) * (other - y) for one, other in zip(known, wanted, strict=True))
    if spread <= 1e-12 * x * x or common <= 0:
        return SiteRelation(y / x, 0.0)
    slope = common / spread
    return SiteRelation(slope, y - slope * x)


Seen = Mapping[str, Mapping[int, float]]  # runtimes by site, then by the task's place in the bag


def learn(seen: Seen) -> dict[str, TaskTime]:
    """Runtime of a task on each site, from all samples: those of other sites are mapped by regression.

    A task that ran on the site itself counts with its runtime there.

    Raises:
        BudgetError: a site has no finished task in common with another, or none at all.
    """
    found = {}
    for site, own in seen.items():
        runtimes = dict(own)
        for other, there in seen.items():
            missing = [task for task in there if task not in runtimes]
            if other == site or not missing:
                continue
            both = [task for task in there if task in own]
            if not both:
                raise BudgetError(f"no task has finished on both {site} and {other}: they cannot be compared")
            line = regression([there[task] for task in both], [own[task] for task in both])
            runtimes.update({task: line(there[task]) for task in missing})
        if not runtimes:
            raise BudgetError(f"no task has finished on {site}: nothing is known of its runtimes")
        found[site] = _moments(list(runtimes.values()))
    return found


def _moments(runtimes: Sequence[float]) -> TaskTime:
    mean = sum(runtimes) / len(runtimes)
    variance = sum((runtime - mean) ** 2 for runtime in runtimes) / max(1, len(runtimes) - 1)
    return TaskTime(mean, math.sqrt(variance))


class SiteSample(msgspec.Struct, frozen=True):
    """Measurements from the sample of one site."""

    runtimes: Mapping[int, float]
    """Seconds of each finished task, by its place in the whole bag."""
    startup: float
    """Seconds from the start of a pilot to that of its first task."""


class SampleTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Prices of a site, and the number of its processors that we can hold."""

    price: float
    """Credits per processor-hour."""
    charging_unit: float
    """Seconds; begun units are charged whole."""
    processors: int
    """The most that we can hold at a time."""
    spare: float = 0.0
    """Seconds that each request reserves beyond its work: pad and grace."""


class Quote(msgspec.Struct, frozen=True):
    """Offers for the rest of a bag."""

    lines: list[Line]
    rest: list[int]
    """The places of the tasks that no sample has finished."""


def sample_places(tasks: int, sites: Sequence[str], seed: int) -> dict[str, list[int]]:
    """The places of the tasks that run as a sample on each site.

    With several sites the tasks that run on all of them come first.

    Raises:
        BudgetError: there is no task, or no site.
    """
    plan = compact_samples(tasks, sites, sample_size(tasks), seed)
    places = {site: [*plan.everywhere, *plan.spread[site]] for site in sites}
    return {site: sorted(places[site]) for site in sites} if len(sites) == 1 else places


def most_processors(max_in_system: int | None, max_proc: int | None, in_service: int | None) -> int:
    """Processors that we can hold at a site at a time, by its limits (None: 1) and size (None: unknown)."""
    allowed = (max_in_system or 1) * (max_proc or 1)
    return allowed if in_service is None else min(allowed, in_service)


def quote(
    tasks: int, cpus: int, sampled: Mapping[str, SiteSample], terms: Mapping[str, SampleTerms]
) -> Quote:
    """The choices for what the samples have left of a bag, which is one task at least.

    Args:
        tasks: of the whole bag.
        cpus: processors of each task.
        sampled: by site; each has finished at least one task.
        terms: by site, of the same sites.

    Raises:
        BudgetError: two sites have no finished task in common.
    """
    done = {place for sample in sampled.values() for place in sample.runtimes}
    rest = [place for place in range(tasks) if place not in done]
    known = learn({site: sample.runtimes for site, sample in sampled.items()})
    offers = [  # in slots of tasks: each stands for the processors of one task
        SiteOffer(
            name=site,
            price=terms[site].price * cpus,
            processors=terms[site].processors // cpus,
            task=known[site],
            charging_unit=terms[site].charging_unit,
            startup=sample.startup,
            spare=terms[site].spare,
        )
        for site, sample in sampled.items()
    ]
    return Quote(menu(len(rest), offers, len(done)), rest)
