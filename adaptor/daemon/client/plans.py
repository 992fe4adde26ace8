"""Forecasts for bags before they are submitted, by the running daemon, or by one look where none runs."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress

import msgspec

from adaptor import api
from adaptor.api import PlanView
from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.credits import millionths
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.menu_line import Line
from adaptor.config.schema import PriceConfig, SiteConfig
from adaptor.daemon.client.bags import read_queue
from adaptor.daemon.client.new_tasks import MOST_REASONS, OwnNeedsOf, check_own_times, own_sizes
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.clock import midnight, system_clock
from adaptor.daemon.sites import limits_of, make_backend, settings_of, terms_of
from adaptor.daemon.treasury import costs_of
from adaptor.decisions.forecasting.planned_bag import NewBag, choices, plan_bag
from adaptor.decisions.memory import Memory
from adaptor.decisions.new_bags import check_can_run, check_sites, impossible_tasks
from adaptor.decisions.observation import take_snapshot
from adaptor.decisions.site_memory import SiteMemory
from adaptor.decisions.snapshot import Snapshot
from adaptor.errors import JournalError, UsageError
from adaptor.forecast.other_bags import OtherBags
from adaptor.journal.database import open_for_reading
from adaptor.journal.kind_rows import EarlierBags, earlier_bags
from adaptor.model import QueueState
from adaptor.protocol.state_directory import private_directory, state_directory
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.facts import other_bags
from adaptor.scheduling.state import SiteTerms
from backends.base import SchedulerError

Configs = Mapping[str, SiteConfig]


@answers(api.GetPlan)
async def read_plan(running: RunningDaemon, asked: api.GetPlan) -> PlanView:
    """Forecast by the running daemon, with its pilots and its other bags.

    Raises UsageError: there is no such site, or no site could ever run the bag.
    """
    core, sites = running.core, running.sites
    names = _allowed(asked.spec, sites)
    earlier = core.earlier.of(asked.spec)
    await asyncio.gather(*(read_queue(sites[name]) for name in names))
    queues = {name: sites[name].memory.queue for name in names}
    problems = {name: sites[name].memory.problem for name in names if queues[name] is None}
    most = max((sites[name].memory.limits.max_proc for name in names), default=0)
    asked, refused = _possible(asked, queues, most)
    now = core.now()
    snapshots = {name: core.snapshot(name, now) for name in names if name not in problems}
    alone = asked.budget is not None or asked.spec.aims
    others = OtherBags() if alone else other_bags(core.broker.state, asked.spec, math.inf)
    new = _new_bag(asked, earlier, queues.values(), others)
    configs = {name: sites[name].config for name in names}
    planned = await asyncio.to_thread(_planned, new, snapshots, core.terms, configs, problems, now)
    return _told(planned, earlier.texts(asked.spec, new.spec), refused)


def plan_here(asked: api.GetPlan, configs: Configs) -> PlanView:
    """Forecast by one look at the schedulers, for times without a daemon.

    Raises UsageError: there is no such site, or no site could ever run the bag.
    """
    names = _allowed(asked.spec, configs)
    now = system_clock()
    memories: dict[str, SiteMemory] = {}
    terms: dict[str, SiteTerms] = {}
    problems: dict[str, str] = {}
    for name in names:
        try:
            config = configs[name]
            backend = make_backend(name, config, private_directory(state_directory()))
            queue = backend.queue_state()  # first: a scheduler that hangs is waited for once
            limits = limits_of(config, backend)
            memory = SiteMemory(settings_of(name, config, backend, limits, poll=15.0), now)
            memory.read(queue)
            memories[name], terms[name] = memory, terms_of(config, limits)
        except SchedulerError as error:
            problems[name] = str(error)
    most = max((memory.limits.max_proc for memory in memories.values()), default=0)
    asked, refused = _possible(asked, {name: memory.queue for name, memory in memories.items()}, most)
    ledger = Ledger()
    for name, costs in costs_of(configs).items():
        ledger.set_price(name, costs.tariff, now)
    now = system_clock()
    snapshots = {
        name: take_snapshot(
            name, memories, Broker(dict(terms)), ledger, Memory(), frozenset(), now, midnight(now)
        )
        for name in memories
    }
    earlier = _earlier(asked.spec, terms)
    new = _new_bag(asked, earlier, [memory.queue for memory in memories.values()], OtherBags())
    planned = _planned(new, snapshots, terms, configs, problems, now)
    return _told(planned, earlier.texts(asked.spec, new.spec), refused)


def _possible(
    asked: api.GetPlan, queues: Mapping[str, QueueState | None], most: int
) -> tuple[api.GetPlan, dict[int, str]]:
    """The bag without the tasks that could never run, and why they could not, by their place.

    `most`: processors of the largest request.

    Raises UsageError: none of its tasks could run, or the needs of one contradict each other.
    """
    own = OwnNeedsOf(asked.tasks, asked.needs, "task {}".format)
    if not own.all:
        check_can_run(asked.spec, queues)
    sizes = own_sizes(asked.spec, own)
    check_own_times(asked.spec, own)
    refused = impossible_tasks(sizes, queues, most)
    if refused and len(refused) == asked.tasks:
        raise UsageError(f"{own.name(0)}: {refused[0]}")
    left = (place for place in range(asked.tasks) if place not in refused) if refused else ()
    places = {place: number for number, place in enumerate(left)}
    needs = {places.get(place, place): each for place, each in asked.needs.items() if place not in refused}
    return msgspec.structs.replace(asked, tasks=asked.tasks - len(refused), needs=needs), refused


def _told(planned: PlanView, earlier: list[str], refused: Mapping[int, str]) -> PlanView:
    """The plan, with what earlier bags tell and why tasks could never run."""
    first = {place: refused[place] for place in sorted(refused)[:MOST_REASONS]}
    return msgspec.structs.replace(planned, earlier=earlier, refused=len(refused), reasons=first)


def _earlier(spec: BagSpec, terms: Mapping[str, SiteTerms]) -> EarlierBags:
    """Earlier bags in the journal of a daemon that does not run; empty if there is none."""
    try:
        with closing(open_for_reading(state_directory())) as db:
            return earlier_bags(db, spec, [name for name, each in terms.items() if each.remember])
    except JournalError:
        return EarlierBags()


def _allowed(spec: BagSpec, sites: Mapping[str, object]) -> list[str]:
    check_sites(spec.sites, sites)
    return [name for name in sites if spec.allows(name)]


def _new_bag(
    asked: api.GetPlan, earlier: EarlierBags, queues: Iterable[QueueState | None], others: OtherBags
) -> NewBag:
    spec = earlier.settled(asked.spec, queues).with_order(budget=asked.budget is not None)
    budget = None if asked.budget is None else millionths(asked.budget, "a budget")
    return NewBag(
        spec=spec,
        tasks=asked.tasks,
        needs=asked.needs,
        budget=budget,
        earlier=earlier.tasks,
        others=others,
    )


def _planned(
    new: NewBag,
    snapshots: Mapping[str, Snapshot],
    terms: Mapping[str, SiteTerms],
    configs: Configs,
    problems: Mapping[str, str],
    now: float,
) -> PlanView:
    if not snapshots:
        raise UsageError("; ".join(f"{name}: {why}" for name, why in problems.items()))
    found = plan_bag(new, snapshots, terms)
    offered: list[Line] = []
    priced = new.budget is not None or any(
        configs[name].price != PriceConfig() or configs[name].budget is not None for name in snapshots
    )
    if priced:
        with suppress(BudgetError):  # no slot holds a task
            offered = choices(new, snapshots, terms)
    return PlanView(
        now=now,
        tasks=new.tasks,
        requests=list(found.requests),
        withheld=found.withheld,
        end=found.end,
        work=found.work,
        credits=found.cost if priced else None,
        choices=offered,
        known=new.known_at(snapshots),
        problems=dict(problems),
    )
