"""Runtimes for a quote: from earlier bags of its kind, or from a sample on every site (BaTS)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import click
import msgspec

from adaptor import api
from adaptor.budget.provisioning import quoting
from adaptor.budget.provisioning.menu_line import Line
from adaptor.budget.provisioning.quoting import SampleTerms, SiteSample
from adaptor.cli.bags.bag_input import plan_of
from adaptor.cli.follow import follow
from adaptor.cli.printing import plural
from adaptor.client.asking import SCHEDULERS_TIMEOUT, ask
from adaptor.client.bags import Client
from adaptor.client.reading import all_tasks
from adaptor.errors import AdaptorError, UsageError

_SEED = 1  # of the random choice of samples: another quote of the same bag takes the same tasks


class QuotedBag(msgspec.Struct, frozen=True):
    """A bag after its sample, if it needs one, and the choices for its rest."""

    lines: list[Line]
    rest: api.BagInput  # the bag without the tasks that the samples have finished
    samples: list[int]  # the bags of the samples
    earlier: list[str] = []  # facts from earlier bags, a sentence each; empty: there is a sample


def by_earlier_bags(bag: api.BagInput) -> QuotedBag | None:
    """The choices for the whole bag, without a sample.

    None: earlier bags of its kinds do not tell enough, or a sample of it is paid for already.
    """
    name = bag.spec.name
    known = {view.id: view.name for view in ask(api.GetBags("all")).bags}
    last = _last_of(name, known)
    if any(id > last and each == _sample_name(name) for id, each in known.items()):
        return None
    found = ask(plan_of(bag), timeout=SCHEDULERS_TIMEOUT)
    if not found.known or not found.choices:
        return None
    return QuotedBag(found.choices, bag, [], found.earlier)


def _last_of(name: str, known: Mapping[int, str]) -> int:
    return max((id for id, each in known.items() if each == name), default=0)


def _sample_name(name: str) -> str:
    return f"{name} sample"


def take_samples(bag: api.BagInput) -> QuotedBag:
    """Run the samples, and quote the rest.

    A sample that an earlier quote of the same bag has run is not run again, unless a bag of this name was
    submitted since: then the sample was for that one.

    Raises:
        UsageError: no site may run the bag, or its sample would be the whole bag.
        AdaptorError: no sample has finished.
    """
    sites, tasks = list(_sites(bag)), len(bag.tasks)
    if quoting.sample_size(tasks) == tasks:
        raise UsageError(
            f"a quote by a sample needs more than {quoting.NORMAL_SAMPLE} tasks, and the bag has {tasks}:"
            " `adaptor plan --time DURATION` shows choices without a sample"
        )
    places = quoting.sample_places(tasks, sites, _SEED)
    known = {view.id: view for view in ask(api.GetBags("all")).bags}
    bags = {name: _submit(bag, name, places[name], known) for name in sites}
    for name, number in bags.items():
        told = f"bag {number}: {plural(len(places[name]), 'task')} as a sample at {name}"
        if number in known:
            told += f", run by an earlier quote (to sample again: adaptor forget {number})"
        click.echo(told, err=True)
    for _ in follow(list(bags.values())):
        pass
    sampled = {name: _sampled(bags[name], places[name]) for name in sites}
    quote = quoting.quote(tasks, bag.spec.task.total_processors, sampled, _terms(bag))
    rest = [bag.tasks[place] for place in quote.rest]
    return QuotedBag(quote.lines, msgspec.structs.replace(bag, tasks=rest), list(bags.values()))


def _sites(bag: api.BagInput) -> dict[str, api.SiteView]:
    found = {site.name: site for site in ask(api.GetSites())}
    allowed = {name: site for name, site in found.items() if bag.spec.allows(name)}
    if not allowed:
        raise UsageError(f"there is no site {bag.spec.sites[0]!r}; the configuration has: {', '.join(found)}")
    return allowed


def _submit(bag: api.BagInput, site: str, places: Sequence[int], known: Mapping[int, api.BagView]) -> int:
    """The bag of a sample: one that is known, unless all of it has failed, or a new one."""
    last = _last_of(bag.spec.name, {view.id: view.name for view in known.values()})
    spec = msgspec.structs.replace(
        bag.spec,
        name=_sample_name(bag.spec.name),
        sites=(site,),
        replicas=0,
        deadline=None,
        prefer=None,
        allocation="explicit",
    )
    sample = api.BagInput(spec=spec, tasks=[bag.tasks[place] for place in places], file=bag.file)
    same = (msgspec.structs.replace(spec, environment={}), sample.tasks, last)
    digest = hashlib.sha256(msgspec.msgpack.encode(same)).hexdigest()
    attempt = 0
    while True:
        with Client() as client:
            number = client.submit(sample, key=f"sample {digest} {attempt}").bag
        before = known.get(number)
        if before is None or before.ended is None or before.done:
            return number
        attempt += 1


def _sampled(bag: int, places: Sequence[int]) -> SiteSample:
    tasks = [task for task in all_tasks(ask, bag, ["done"]) if task.wall is not None]
    if not tasks:
        raise AdaptorError(f"no task of the sample has finished: adaptor results {bag} --failed")
    runtimes = {places[task.task]: max(task.wall or 0.0, 1e-3) for task in tasks}
    begins = [pilot.started for pilot in ask(api.GetReport(bag)).requests]
    first = min((task.started for task in tasks if task.started is not None), default=0.0)
    startup = min((max(0.0, first - begin) for begin in begins if begin is not None), default=0.0)
    return SiteSample(runtimes, startup)


def _terms(bag: api.BagInput) -> dict[str, SampleTerms]:
    prices = {each.site: each for each in ask(api.GetCredits()).prices}
    task = bag.spec.task
    gpus = task.gpus_for(task.tasks_per_gpu) / (task.tasks_per_gpu * task.processors)
    return {
        name: SampleTerms(
            price=prices[name].explicit + gpus * prices[name].gpu,
            charging_unit=float(prices[name].charging_unit),
            spare=site.pad + prices[name].grace,
            processors=quoting.most_processors(site.max_in_system, site.max_proc, site.processors),
        )
        for name, site in _sites(bag).items()
    }
