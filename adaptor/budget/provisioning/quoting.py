"""A quote: which tasks are run as a sample, and what the rest of the bag then costs and takes (BaTS)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.menu import Line, menu
from adaptor.budget.provisioning.sampling import compact_samples, sample_size
from adaptor.budget.provisioning.site_mapping import learn
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.runtimes.task_time import TaskTime


class SiteSample(msgspec.Struct, frozen=True):
    """What the sample of one site has shown."""

    runtimes: Mapping[int, float]
    """Seconds of each finished task, by its place in the whole bag."""
    startup: float
    """Seconds from the start of a pilot to that of its first task."""


class SampleTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a site charges, and how much of it we can hold."""

    price: float
    """Credits per processor-hour."""
    charging_unit: float
    """Seconds; begun units are charged whole."""
    processors: int
    """The most that we can hold at a time."""


class Quote(msgspec.Struct, frozen=True):
    """What the rest of a bag is offered for."""

    lines: list[Line]
    rest: list[int]
    """The places of the tasks that no sample has finished."""
    runtimes: dict[str, float]
    """By site: the longest runtime in its sample, seconds."""


def sample_places(tasks: int, sites: Sequence[str], seed: int) -> dict[str, list[int]]:
    """The places of the tasks that run as a sample on each site.

    With several sites the tasks that run on all of them come first.

    Raises:
        BudgetError: there is no task, or no site.
    """
    plan = compact_samples(tasks, sites, sample_size(tasks), seed)
    places = {site: [*plan.everywhere, *plan.spread[site]] for site in sites}
    return {site: sorted(places[site]) for site in sites} if len(sites) == 1 else places


def most_processors(max_pending_requests: int | None, max_proc: int | None, in_service: int | None) -> int:
    """Processors that we can hold at a site at a time, by its limits (None: 1) and size (None: unknown)."""
    allowed = (max_pending_requests or 1) * (max_proc or 1)
    return allowed if in_service is None else min(allowed, in_service)


def quote(
    tasks: int, cpus: int, sampled: Mapping[str, SiteSample], terms: Mapping[str, SampleTerms]
) -> Quote:
    """The choices for what the samples have left of a bag.

    Args:
        tasks: of the whole bag.
        cpus: processors of each task.
        sampled: by site; each has finished at least one task.
        terms: by site, of the same sites.

    Raises:
        BudgetError: the samples have finished the whole bag, or two sites have no finished task in common.
    """
    done = {place for sample in sampled.values() for place in sample.runtimes}
    rest = [place for place in range(tasks) if place not in done]
    if not rest:
        raise BudgetError("the sample was the whole bag: its results are there, and no task is left to quote")
    known = learn({site: sample.runtimes for site, sample in sampled.items()})
    offers = [_offer(site, known[site], sampled[site], terms[site], cpus) for site in sampled]
    longest = {site: max(sample.runtimes.values()) for site, sample in sampled.items()}
    return Quote(menu(len(rest), offers, len(done)), rest, longest)


def _offer(site: str, task: TaskTime, sample: SiteSample, terms: SampleTerms, cpus: int) -> SiteOffer:
    """In slots of tasks: each stands for the processors of one task."""
    return SiteOffer(
        name=site,
        price=terms.price * cpus,
        processors=terms.processors // cpus,
        task=task,
        charging_unit=terms.charging_unit,
        startup=sample.startup,
    )
