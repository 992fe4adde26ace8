"""The sampling phase of a quote: some tasks of a bag on every site, and what they teach (BaTS)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click
import msgspec

from adaptor import views
from adaptor.budget.estimation.task_time import TaskTime
from adaptor.budget.provisioning.menu import Line, menu
from adaptor.budget.provisioning.sampling import Samples, compact_samples, sample_size
from adaptor.budget.provisioning.site_mapping import learn
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.cli.client import ask
from adaptor.cli.follow import follow
from adaptor.cli.words import plural
from adaptor.errors import AdaptorError, UsageError
from adaptor.protocol import control

_PAGE = 10_000


class Quote(msgspec.Struct, frozen=True):
    """What a bag is offered for."""

    lines: list[Line]
    rest: control.BagInput
    """The bag without the tasks that were sampled."""
    samples: list[int]
    """The bags of the samples."""


class _Sampled(msgspec.Struct, frozen=True):
    """What the samples of one site have shown."""

    runtimes: dict[int, float]
    """Seconds, by the place of the task in the whole bag."""
    startup: float
    """Seconds from a pilot's start to its first task."""


def take_samples(bag: control.BagInput, seed: int) -> Quote:
    """Run the samples and make the menu for the rest.

    Raises:
        UsageError: no site may run the bag, or the sample is all of it.
        AdaptorError: no sample has finished.
    """
    sites = _sites(bag)
    size = sample_size(len(bag.tasks))
    plan = compact_samples(len(bag.tasks), list(sites), size, seed)
    places = {name: _places(plan, name, alone=len(sites) == 1) for name in sites}
    bags = {name: _submit(bag, name, places[name]) for name in sites}
    for name, number in bags.items():
        click.echo(f"bag {number}: {plural(len(places[name]), 'task')} as a sample at {name}", err=True)
    for _ in follow(list(bags.values())):
        pass
    sampled = {name: _sampled(bags[name], places[name]) for name in sites}
    known = learn({name: each.runtimes for name, each in sampled.items()})
    done = {place for each in sampled.values() for place in each.runtimes}
    rest = [task for place, task in enumerate(bag.tasks) if place not in done]
    longest = {name: max(each.runtimes.values()) for name, each in sampled.items()}
    if not rest:
        raise UsageError("the sample was all of the bag: its results are there, and nothing is left to quote")
    offers = _offers(_sites(bag), known, sampled, bag.spec.cpus)
    return Quote(
        menu(len(rest), offers, len(done)),
        msgspec.structs.replace(bag, spec=msgspec.structs.replace(bag.spec, runtimes=longest), tasks=rest),
        list(bags.values()),
    )


def _sites(bag: control.BagInput) -> dict[str, views.SiteView]:
    found = {site.name: site for site in ask(control.GetSites(), control.Sites).sites}
    allowed = {name: site for name, site in found.items() if bag.spec.allows(name)}
    if not allowed:
        raise UsageError(f"there is no site {bag.spec.sites[0]!r}; the configuration has: {', '.join(found)}")
    return allowed


def _places(plan: Samples, site: str, *, alone: bool) -> list[int]:
    """Which tasks run at a site; tasks that run everywhere come first."""
    return sorted({*plan.everywhere, *plan.spread[site]}) if alone else [*plan.everywhere, *plan.spread[site]]


def _submit(bag: control.BagInput, site: str, places: Sequence[int]) -> int:
    spec = msgspec.structs.replace(
        bag.spec,
        name=f"{bag.spec.name} sample",
        sites=(site,),
        replicas=0,
        deadline=None,
        prefer=None,
        allocation="explicit",
    )
    sample = control.BagInput(spec=spec, tasks=[bag.tasks[place] for place in places])
    return ask(control.Submit(sample), control.Submitted).bag


def _sampled(bag: int, places: Sequence[int]) -> _Sampled:
    tasks = [task for task in _tasks(bag) if task.wall is not None]
    if not tasks:
        raise AdaptorError(f"no task of the sample has finished: adaptor results {bag} --failed")
    runtimes = {places[task.task]: max(task.wall or 0.0, 1e-3) for task in tasks}
    begins = [pilot.started for pilot in ask(control.GetReport(bag), control.Report).report.requests]
    first = min((task.started for task in tasks if task.started is not None), default=0.0)
    startup = min((max(0.0, first - begin) for begin in begins if begin is not None), default=0.0)
    return _Sampled(runtimes, startup)


def _tasks(bag: int) -> Iterator[views.TaskView]:
    after = -1
    while True:
        page = ask(control.GetTasks(bag, ["done"], after, _PAGE), control.Tasks).tasks
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].task


def _offers(
    sites: Mapping[str, views.SiteView],
    known: Mapping[str, TaskTime],
    sampled: Mapping[str, _Sampled],
    cpus: int,
) -> list[SiteOffer]:
    """What each site offers for tasks of so many processors: a processor stands for a slot of a task."""
    prices = {each.site: each for each in ask(control.GetCredits(), control.Credits).credits.prices}
    return [
        SiteOffer(
            name=name,
            price=prices[name].explicit * cpus,
            processors=_most(site) // cpus,
            task=known[name],
            charging_unit=float(prices[name].charging_unit),
            startup=sampled[name].startup,
        )
        for name, site in sites.items()
    ]


def _most(site: views.SiteView) -> int:
    """Processors that we can hold there at a time."""
    allowed = (site.max_pending_requests or 1) * (site.max_proc or 1)
    return min(allowed, site.processors) if site.processors is not None else allowed
