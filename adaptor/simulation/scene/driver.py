"""The simulation's own driver of a site: observe, `decide`, act, as the daemon does, without its journal."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.futures.run_shares import RunShares
from adaptor.crafting.situation import Reshape, Withdraw
from adaptor.decisions.actions import (
    Action,
    End,
    GiveUp,
    KeepForecast,
    LengthenPad,
    Remark,
    SubmitRequest,
    Wake,
    WithdrawStuck,
    WithholdNodes,
)
from adaptor.decisions.decide import decide
from adaptor.decisions.memory import Memory
from adaptor.decisions.observation import sites_facts, take_snapshot
from adaptor.decisions.pilots import Pilot, observe
from adaptor.decisions.requests import billed
from adaptor.decisions.site_memory import SiteMemory
from adaptor.decisions.snapshot import Arrival, SiteFacts, Snapshot
from adaptor.forecast.record import FirstForecast
from adaptor.model import AttemptOutcome
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.changes import AttemptEnd, AttemptStart
from adaptor.scheduling.state import SiteTerms
from adaptor.simulation.scene.site import SimulatedSite


class Decided(msgspec.Struct, frozen=True):
    """An action of a site."""

    at: float
    site: str
    action: Action


class SimulatedDriver:
    """Decides for simulated sites; see `World`, whose `Decider` it is."""

    def __init__(
        self,
        sites: Mapping[str, SimulatedSite],
        terms: Mapping[str, SiteTerms],
        tariffs: Mapping[str, Tariff],
        *,
        watched: Mapping[str, RunShares] | None = None,
    ) -> None:
        """`watched`: by site, what was learned of its local jobs before."""
        self.broker = Broker(dict(terms))
        self.ledger = Ledger()
        for name, tariff in tariffs.items():
            self.ledger.set_price(name, tariff, 0.0)
        self.log: list[Decided] = []
        """All that was decided, in its order."""
        self.pilots: dict[int, Pilot] = {}
        """All that ever were."""
        self.first_forecasts: dict[int, FirstForecast] = {}
        """By bag: the forecast that is judged."""
        self._sites = sites
        self._memories = {name: SiteMemory(site.place.settings, 0.0) for name, site in sites.items()}
        for name, shares in (watched or {}).items():
            self._memories[name].jobs = shares
        self._memory = Memory()
        self._numbers = itertools.count(1)
        self._useful: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        self._wasted: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))

    # --- what the world tells ----------------------------------------------------------------------

    def called(self, site: str, pilot: int, now: float) -> None:
        called = self._memories[site].pilots.get(pilot)
        if called is not None:
            called.hello(now, called.node, Arrival(called.request.p))

    def attempt_started(self, started: AttemptStart) -> None:
        self.pilots[started.pilot].worked = True

    def attempt_ended(self, ended: AttemptEnd) -> None:
        if ended.pilot is None or not ended.wall:
            return
        held = self._useful if ended.outcome is AttemptOutcome.DONE else self._wasted
        bag = self.broker.state.bags.get(ended.key.bag)
        held[ended.pilot][ended.key.bag] += ended.wall * (bag.spec.cpus if bag else 1)

    def facts(self, now: float) -> dict[str, SiteFacts]:
        """The sites as a decision sees them."""
        return sites_facts(self._memories, self.broker, now, midnight=0.0)

    def snapshot(self, site: str, now: float) -> Snapshot:
        """What a step of the site would decide on at this time."""
        return take_snapshot(
            site,
            self._memories,
            self.broker,
            self.ledger,
            self._memory,
            self.first_forecasts.keys(),
            now,
            midnight=0.0,
        )

    def jobs_of(self, site: str) -> set[str]:
        """The scheduler's ids of our requests in the system."""
        return {pilot.job for pilot in self._memories[site].pilots.values() if pilot.job is not None}

    # --- one step ----------------------------------------------------------------------------------

    def step(self, site: str, now: float) -> Iterable[str]:
        memory, woken = self._memories[site], set[str]()
        memory.keep_failures(self.broker)
        if not memory.is_active(self.broker):
            memory.read(None)
            return woken
        self._observe(site, now, woken)
        decision = decide(self.snapshot(site, now))
        self._memory = decision.memory
        for action in decision.actions:
            self.log.append(Decided(now, site, action))
            self._do(site, action, now, woken)
        return woken

    def _observe(self, site: str, now: float, woken: set[str]) -> None:
        memory, simulated = self._memories[site], self._sites[site]
        reports = {report.tag: report for report in simulated.jobs()}
        for pilot in list(memory.pilots.values()):
            observe(pilot, reports[pilot.tag], now)
            memory.learn_wait(pilot)
            memory.meter(self.broker, pilot, self.ledger)
            if not pilot.in_system:
                self._ended(memory, pilot, now)
                woken.add(site)
        memory.watch(self.broker, now)
        memory.expect_requests(self.broker)
        if memory.wants_nodes(self.broker, now):
            memory.saw_nodes(self.broker, simulated.nodes(), now, midnight=0.0)
        memory.read(simulated.queue_state() if memory.wants_queue(self.broker) else None)

    def _ended(self, memory: SiteMemory, pilot: Pilot, now: float) -> None:
        memory.ended(self.broker, pilot, now)
        memory.judge(self.broker, pilot, now)
        useful, wasted = self._useful.pop(pilot.id, {}), self._wasted.pop(pilot.id, {})
        uses = {
            bag: Use(useful=useful.get(bag, 0.0), wasted=wasted.get(bag, 0.0)) for bag in {**useful, **wasted}
        }
        ended = pilot.ended if pilot.ended is not None else now
        self.ledger.settle(pilot.id, pilot.started, ended, uses, now)

    # --- acting ------------------------------------------------------------------------------------

    def _do(self, site: str, action: Action, now: float, woken: set[str]) -> None:
        memory = self._memories[site]
        match action:
            case SubmitRequest():
                self._submit(memory, action, now)
            case Withdraw() | WithdrawStuck() | End():
                woken |= self._withdraw(memory, action, now)
            case Reshape():
                self._reshape(memory, action, now)
            case GiveUp(bag, reason, task):
                self.broker.give_up(bag, reason, task)
            case KeepForecast():
                self.first_forecasts.setdefault(action.bag, action.first)
            case LengthenPad(pad):
                memory.lengthen_pad(self.broker, pad)
            case Remark():
                memory.remark(action)
            case Wake(name):
                woken.add(name)
            case WithholdNodes(reason) if memory.donation is not None:
                memory.donation.reason = reason

    def _withdraw(self, memory: SiteMemory, action: Withdraw | WithdrawStuck | End, now: float) -> set[str]:
        """Returns the site if it is to step soon."""
        pilot = memory.withdraw(action, now)
        if pilot is None or pilot.job is None:
            return set()
        self._sites[memory.name].cancel([pilot.job])
        return {memory.name}

    def _reshape(self, memory: SiteMemory, action: Reshape, now: float) -> None:
        pilot, crafted = memory.reshapable(action), action.crafted
        if pilot is None or pilot.job is None:
            return
        site, task = self._sites[memory.name], action.demand.task
        if not site.reshape(pilot.job, crafted.request, task, pilot.partition):
            pilot.fixed = True
            return
        self.ledger.change(pilot.id, billed(memory.rules, crafted.request), now, within=False)
        pilot.predicted_start = crafted.predicted_start
        pilot.reshape(crafted.request, now)

    def _submit(self, memory: SiteMemory, action: SubmitRequest, now: float) -> None:
        number, request = next(self._numbers), action.crafted.request
        cost = billed(memory.rules, request)
        gpus = action.gpus_per_processor
        self.ledger.reserve(number, memory.name, cost, action.kind, action.payers, now, gpus)
        pilot = memory.add_pilot(self.broker, number, f"{memory.name}.{number}", action, now)
        self.pilots[number] = pilot
        job = self._sites[memory.name].submit(
            number, pilot.tag, request, action.node, action.demand.task, pilot.partition
        )
        memory.submitted(pilot, job)
