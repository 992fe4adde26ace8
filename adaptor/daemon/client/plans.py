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
from adaptor.budget.provisioning.menu import Line
from adaptor.config.schema import PriceConfig, SiteConfig
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.clock import midnight, system_clock
from adaptor.daemon.site import Site
from adaptor.daemon.sites import limits_of, make_backend, settings_of, terms_of
from adaptor.daemon.treasury import costs_of
from adaptor.decisions.forecasting.planned_bag import NewBag, choices, plan_bag
from adaptor.decisions.memory import Memory
from adaptor.decisions.new_bags import check_can_run, check_sites
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
    await asyncio.gather(*(_look(sites[name]) for name in names))
    queues = {name: sites[name].memory.queue for name in names}
    problems = {name: sites[name].memory.problem for name in names if queues[name] is None}
    check_can_run(asked.spec, queues)
    now = core.now()
    snapshots = {name: core.snapshot(name, now) for name in names if name not in problems}
    alone = asked.budget is not None or asked.spec.aims
    others = OtherBags() if alone else other_bags(core.broker.state, asked.spec, math.inf)
    new = _new_bag(asked, earlier, queues.values(), others)
    configs = {name: sites[name].config for name in names}
    planned = await asyncio.to_thread(_planned, new, snapshots, core.terms, configs, problems, now)
    return msgspec.structs.replace(planned, earlier=earlier.texts(asked.spec, new.spec))


async def _look(site: Site) -> None:
    site.memory.read(await site.look(patient=False))


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
    check_can_run(asked.spec, {name: memory.queue for name, memory in memories.items()})
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
    return msgspec.structs.replace(planned, earlier=earlier.texts(asked.spec, new.spec))


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
    return NewBag(spec=spec, tasks=asked.tasks, budget=budget, earlier=earlier.tasks, others=others)


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
