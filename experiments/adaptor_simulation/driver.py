"""Drives the steps of simulated sites, as the daemon those of real ones, without its journal.

`SimulatedDriver` answers the steps. `run_grid_job` runs one bag at one site on it (De Rose §4.4);
`adaptor_simulation.scene` runs several bags at several sites.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.errors import OverBudgetError
from adaptor.crafting.futures.run_shares import RunShares
from adaptor.crafting.situation import Reshape
from adaptor.decisions.actions import Action, KeepForecast, Prolong, Wake
from adaptor.decisions.decide import Decision, decide
from adaptor.decisions.memory import Memory
from adaptor.decisions.observation import sites_facts, take_snapshot
from adaptor.decisions.pilots import Arrival, Pilot
from adaptor.decisions.questions import (
    Answer,
    Ask,
    Cancel,
    Intend,
    IntendChange,
    PilotChanged,
    PilotNews,
    PilotsChanged,
    Question,
    Reply,
    RequestChanged,
    Steps,
    Submit,
    Together,
)
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.decisions.site_memory import SiteMemory
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.decisions.step import Step
from adaptor.forecast.record import FirstForecast
from adaptor.model import AttemptOutcome, CraftedRequest
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.changes import AttemptEnd, AttemptStart
from adaptor_simulation.scene.site import SimulatedSite

Decider = Callable[[Snapshot], Decision]  # `decide`, or a function that calls it and takes notes


class Decided(msgspec.Struct, frozen=True):
    """An action of a site."""

    at: float
    site: str
    action: Action


class SimulatedDriver:
    """Answers the steps of simulated sites. A `World` decides by it, or a grid job."""

    def __init__(
        self,
        sites: Mapping[str, SimulatedSite],
        broker: Broker,
        tariffs: Mapping[str, Tariff],
        *,
        watched: Mapping[str, RunShares] | None = None,
        seen: Mapping[str, SeenNodes] | None = None,
        decider: Decider = decide,
    ) -> None:
        """`watched` and `seen`: by site, what was learned of its local jobs and of its nodes before."""
        self.broker = broker
        self.ledger = Ledger()
        for name, tariff in tariffs.items():
            self.ledger.set_price(name, tariff, 0.0)
        self.log: list[Decided] = []  # all that was decided, in its order
        self.ended: dict[int, Pilot] = {}  # by number: the pilots that have left
        self.crafted: dict[int, CraftedRequest] = {}  # by pilot: what it asked for last
        self.reshaped: Counter[int] = Counter()  # by pilot: how often its request was changed
        self.first_forecasts: dict[int, FirstForecast] = {}  # by bag: the forecast that is judged
        self.sites = {
            name: SiteMemory(site.place.settings, 0.0, nodes=(seen or {}).get(name))
            for name, site in sites.items()
        }
        for name, shares in (watched or {}).items():
            self.sites[name].jobs = shares
        self.decided = Memory()
        self._decider = decider
        self._simulated = sites
        self._numbers = itertools.count(1)
        self._held: dict[AttemptKey, tuple[int, int]] = {}  # pilot and processors of attempts without an end
        self._useful: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        self._wasted: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))

    # --- what the world tells ----------------------------------------------------------------------

    def called(self, site: str, pilot: int, now: float) -> None:
        called = self.sites[site].pilots.get(pilot)
        if called is not None:
            self.sites[site].keep(called.heard(now, called.node, Arrival(called.request.p)))

    def attempt_started(self, started: AttemptStart) -> None:
        bag = self.broker.state.bags.get(started.key.bag)
        if bag is not None:  # else a replica that ended in the second of its start, with its bag
            self._held[started.key] = started.pilot, bag.spec.cpus  # the bag may be forgotten at its end
        for memory in self.sites.values():
            if (pilot := memory.pilots.get(started.pilot)) is not None and not pilot.worked:
                memory.change(pilot, worked=True)

    def attempt_ended(self, ended: AttemptEnd) -> None:
        if ended.key not in self._held:
            return
        pilot, cpus = self._held.pop(ended.key)
        if ended.started is None:
            return
        seconds = max(0.0, ended.at - ended.started) if ended.wall is None else ended.wall
        held = self._useful if ended.outcome is AttemptOutcome.DONE else self._wasted
        held[pilot][ended.key.bag] += seconds * cpus

    def facts(self, now: float) -> dict[str, SiteFacts]:
        """The sites as a decision sees them."""
        return sites_facts(self.sites, self.broker, now, midnight=0.0)

    def snapshot(self, site: str, now: float) -> Snapshot:
        """The snapshot on which a step of the site would decide at the time `now`."""
        kept = self.first_forecasts.keys()
        return take_snapshot(
            site, self.sites, self.broker, self.ledger, self.decided, kept, now, midnight=0.0
        )

    # --- one step ----------------------------------------------------------------------------------

    def step(self, site: str, now: float) -> Iterable[str]:
        woken = set[str]()
        self._drive(site, Step(self, self.sites[site], now).run(), now, woken)
        return woken

    def _drive(self, site: str, steps: Steps, now: float, woken: set[str]) -> None:
        question = next(steps, None)
        while question is not None:
            reply = self._reply(site, question, now, woken)
            try:
                question = steps.send(reply)
            except StopIteration:
                return

    def _reply(self, site: str, question: Question, now: float, woken: set[str]) -> Reply:
        match question:
            case Ask():
                return self._asked(site, question, now)
            case Cancel(jobs):
                self._simulated[site].cancel([job.id for job in jobs])
            case Intend() | IntendChange() | Prolong():
                return self._intend(site, question, now)
            case Submit():
                return self._submit(site, question, now)
            case Together(steps):
                for each in steps:
                    self._drive(site, each, now, woken)
            case Reshape():
                return Reply(now=now, answer=self._reshape(site, question))
            case Wake(name):
                woken.add(name)
            case _:
                self._note(question, now)
        return Reply(now=now)

    def _note(self, question: Question, now: float) -> None:
        match question:
            case RequestChanged(pilot, asked):
                self.ledger.change(pilot.id, asked, now, within=False)
            case PilotChanged(pilot):
                self._charge(pilot, now)
            case PilotsChanged(pilots):
                for each in pilots:
                    self._charge(each, now)
            case KeepForecast(bag, first) if first is not None:
                self.first_forecasts.setdefault(bag, first)

    def _asked(self, site: str, what: Ask, now: float) -> Reply:
        simulated = self._simulated[site]
        match what:
            case Ask.PILOTS:
                news = [PilotNews(pilot=pilot, report=report) for pilot, report in simulated.news()]
                return Reply(now=now, pilots=news)
            case Ask.NODES:
                return Reply(now=now, nodes=simulated.nodes())
            case Ask.QUEUE:
                return Reply(now=now, queue=simulated.queue_state())
            case Ask.DECISION:
                return Reply(now=now, decision=self._decide(site, now))
        return Reply(now=now)

    def _decide(self, site: str, now: float) -> Decision:
        decision = self._decider(self.snapshot(site, now))
        self.log += [Decided(now, site, action) for action in decision.actions]
        return decision

    def _charge(self, pilot: Pilot, now: float) -> None:
        """Charge a pilot that has ended."""
        if pilot.state.in_system:
            return
        self.ended[pilot.id] = pilot
        useful, wasted = self._useful.pop(pilot.id, {}), self._wasted.pop(pilot.id, {})
        uses = {
            bag: Use(useful=useful.get(bag, 0.0), wasted=wasted.get(bag, 0.0)) for bag in {**useful, **wasted}
        }
        self.ledger.settle(pilot.id, pilot.started, now if pilot.ended is None else pilot.ended, uses, now)

    def _reshape(self, site: str, action: Reshape) -> Answer:
        pilot = self.sites[site].pilots[action.pilot]
        assert pilot.job is not None
        request, task = action.crafted.request, action.demand.task
        if not self._simulated[site].reshape(pilot.job, request, task, pilot.partition):
            return Answer.REFUSED
        self.crafted[pilot.id] = action.crafted
        self.reshaped[pilot.id] += 1
        return Answer.TAKEN

    def _intend(self, site: str, intent: Intend | IntendChange | Prolong, now: float) -> Reply:
        if not isinstance(intent, Intend):
            try:
                if isinstance(intent, Prolong):
                    self.ledger.prolong(intent.pilot, intent.paid, now)
                else:
                    self.ledger.hold_for(intent.action.pilot, intent.asked, now)
            except OverBudgetError as error:
                return Reply(now=now, problem=str(error))
            return Reply(now=now)
        numbers = []
        for each in intent.submits:
            numbers.append(number := next(self._numbers))
            self.ledger.reserve(
                number, site, intent.asked, each.kind, each.demand.payers, now, each.per, each.crafted.paid
            )
            self.crafted[number] = each.crafted
        return Reply(now=now, pilot=numbers[0], tags=tuple(f"{site}.{number}" for number in numbers))

    def _submit(self, site: str, asked: Submit, now: float) -> Reply:
        cluster, task = self._simulated[site], asked.demand.task
        jobs = (
            cluster.submit(pilot.id, pilot.tag, pilot.request, pilot.node, task, pilot.partition)
            for pilot in asked.pilots
        )
        return Reply(now=now, jobs=tuple(jobs))
