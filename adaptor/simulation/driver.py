"""Drives the steps of simulated sites, as the daemon those of real ones, without its journal.

`SimulatedDriver` answers the steps. `run_grid_job` runs one bag at one site on it (De Rose §4.4);
`adaptor.simulation.scene` runs several bags at several sites.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.futures.run_shares import RunShares
from adaptor.crafting.situation import Reshape, Withdraw, Withhold
from adaptor.decisions.actions import Action, KeepForecast, SubmitRequest, Wake
from adaptor.decisions.decide import Decision, decide
from adaptor.decisions.memory import Memory
from adaptor.decisions.observation import sites_facts, take_snapshot
from adaptor.decisions.pilots import Arrival, Pilot, request_told
from adaptor.decisions.requests import billed
from adaptor.decisions.site_memory import SiteMemory, SiteSettings
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.decisions.step import (
    Answer,
    Ask,
    Cancel,
    PilotChanged,
    PilotNews,
    Question,
    Reply,
    Step,
    UseNodes,
)
from adaptor.forecast.record import FirstForecast
from adaptor.model import AttemptOutcome, CraftedRequest, QueueState, Request
from adaptor.reports import JobState
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.changes import AttemptEnd, AttemptStart
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.grid_job import GridRequest, GridResult, GridTerms, check_grid_job
from adaptor.simulation.kernels import NEVER, Array
from adaptor.simulation.pilot_requests import Cluster, check_place, queue_for
from adaptor.simulation.queue_view import queue_state
from adaptor.simulation.scene.site import Change, ScenePlace, SimulatedSite
from adaptor.simulation.tasks.kernel_tasks import tasks_of
from adaptor.simulation.tasks.protocol import SITE, MakeTasks, Served

Decider = Callable[[Snapshot], Decision]
"""`decide`, or somebody who asks it and takes notes."""


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
        decider: Decider = decide,
    ) -> None:
        """`watched`: by site, what was learned of its local jobs before."""
        self.broker = broker
        self.ledger = Ledger()
        for name, tariff in tariffs.items():
            self.ledger.set_price(name, tariff, 0.0)
        self.log: list[Decided] = []
        """All that was decided, in its order."""
        self.ended: dict[int, Pilot] = {}
        """By number: the pilots that have left."""
        self.crafted: dict[int, CraftedRequest] = {}
        """By pilot: what it asked for last."""
        self.reshaped: Counter[int] = Counter()
        """By pilot: how often its request was changed."""
        self.first_forecasts: dict[int, FirstForecast] = {}
        """By bag: the forecast that is judged."""
        self.sites = {name: SiteMemory(site.place.settings, 0.0) for name, site in sites.items()}
        for name, shares in (watched or {}).items():
            self.sites[name].jobs = shares
        self.decided = Memory()
        self._decider = decider
        self._simulated = sites
        self._numbers = itertools.count(1)
        self._useful: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        self._wasted: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))

    # --- what the world tells ----------------------------------------------------------------------

    def called(self, site: str, pilot: int, now: float) -> None:
        called = self.sites[site].pilots.get(pilot)
        if called is not None:
            self.sites[site].keep(called.heard(now, called.node, Arrival(called.request.p)))

    def attempt_started(self, started: AttemptStart) -> None:
        for memory in self.sites.values():
            if (pilot := memory.pilots.get(started.pilot)) is not None and not pilot.worked:
                memory.change(pilot, worked=True)

    def attempt_ended(self, ended: AttemptEnd) -> None:
        if ended.pilot is None or not ended.wall:
            return
        held = self._useful if ended.outcome is AttemptOutcome.DONE else self._wasted
        bag = self.broker.state.bags.get(ended.key.bag)
        held[ended.pilot][ended.key.bag] += ended.wall * (bag.spec.cpus if bag else 1)

    def facts(self, now: float) -> dict[str, SiteFacts]:
        """The sites as a decision sees them."""
        return sites_facts(self.sites, self.broker, now, midnight=0.0)

    def snapshot(self, site: str, now: float) -> Snapshot:
        """What a step of the site would decide on at this time."""
        kept = self.first_forecasts.keys()
        return take_snapshot(
            site, self.sites, self.broker, self.ledger, self.decided, kept, now, midnight=0.0
        )

    def jobs_of(self, site: str) -> set[str]:
        """The scheduler's ids of our requests in the system."""
        return {pilot.job for pilot in self.sites[site].pilots.values() if pilot.job is not None}

    # --- one step ----------------------------------------------------------------------------------

    def step(self, site: str, now: float) -> Iterable[str]:
        steps, woken = Step(self, self.sites[site], now).run(), set[str]()
        question = next(steps, None)
        while question is not None:
            reply = self._reply(site, question, now, woken)
            try:
                question = steps.send(reply)
            except StopIteration:
                break
        return woken

    def _reply(self, site: str, question: Question, now: float, woken: set[str]) -> Reply:
        match question:
            case Ask():
                return self._asked(site, question, now)
            case Cancel(jobs):
                self._simulated[site].cancel(jobs)
            case SubmitRequest():
                self._submit(site, question, now)
            case UseNodes(submits):
                for submit in submits:
                    self._submit(site, submit, now)
            case Reshape():
                return Reply(now=now, answer=self._reshape(site, question, now))
            case Wake(name):
                woken.add(name)
            case _:
                self._write_down(question, now)
        return Reply(now=now)

    def _write_down(self, question: Question, now: float) -> None:
        match question:
            case PilotChanged(pilot):
                self._charge(pilot, now)
            case KeepForecast(bag, first):
                self.first_forecasts.setdefault(bag, first)

    def _asked(self, site: str, what: Ask, now: float) -> Reply:
        simulated = self._simulated[site]
        match what:
            case Ask.PILOTS:
                news = [PilotNews(pilot=pilot, report=report) for pilot, report in simulated.news()]
                for each in news:
                    self._take_in(self.sites[site], each, now)
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

    def _take_in(self, memory: SiteMemory, news: PilotNews, now: float) -> None:
        """What a request got when it started, which may be less than its tr; as the daemon takes it in."""
        pilot = memory.pilots[news.pilot]
        assert news.report is not None
        got = request_told(pilot, news.report, pilot.request, pilot.request)
        if not pilot.node and got != pilot.request:
            memory.keep(pilot.reshaped_to(got, now))
            self.ledger.change(pilot.id, billed(memory.rules, got), now, within=False)

    def _charge(self, pilot: Pilot, now: float) -> None:
        """Charge a pilot that has ended."""
        if pilot.in_system:
            return
        self.ended[pilot.id] = pilot
        useful, wasted = self._useful.pop(pilot.id, {}), self._wasted.pop(pilot.id, {})
        uses = {
            bag: Use(useful=useful.get(bag, 0.0), wasted=wasted.get(bag, 0.0)) for bag in {**useful, **wasted}
        }
        self.ledger.settle(pilot.id, pilot.started, now if pilot.ended is None else pilot.ended, uses, now)

    def _reshape(self, site: str, action: Reshape, now: float) -> Answer:
        memory, request = self.sites[site], action.crafted.request
        pilot = memory.pilots[action.pilot]
        assert pilot.job is not None
        if not self._simulated[site].reshape(pilot.job, request, action.demand.task, pilot.partition):
            return Answer.REFUSED
        self.ledger.change(pilot.id, billed(memory.rules, request), now, within=False)
        self.crafted[pilot.id] = action.crafted
        self.reshaped[pilot.id] += 1
        return Answer.TAKEN

    def _submit(self, site: str, action: SubmitRequest, now: float) -> None:
        number, request, memory = next(self._numbers), action.crafted.request, self.sites[site]
        cost = billed(memory.rules, request)
        self.ledger.reserve(number, site, cost, action.kind, action.payers, now, action.gpus_per_processor)
        pilot = memory.add_pilot(self.broker, number, f"{site}.{number}", action, now)
        self.crafted[number] = action.crafted
        simulated = self._simulated[site]
        memory.submitted(
            pilot,
            simulated.submit(number, pilot.tag, request, action.node, action.demand.task, pilot.partition),
        )


_CREDIT = Tariff(price_explicit=1.0, price_donated=1.0)
"""Without a budget nobody looks at it."""


def run_grid_job(
    cluster: Cluster,
    runtimes: Array,
    terms: GridTerms,
    make: MakeTasks = tasks_of,
    decider: Decider = decide,
) -> GridResult:
    """Run a bag of tasks that is submitted now, to its last task; the cluster's clock moves on.

    The site decides at the submission, whenever a pilot starts or ends and whenever the estimated
    runtime changes, which is when the daemon wakes ("every time the grid broker asks for processors
    or when a space-shared request finishes", §4.3.1).

    Args:
        cluster: usually a fork; its queue is the one that the job finds.
        runtimes: int64, whole seconds of each task, in the order in which they are handed out.
        make: who runs the tasks.
        decider: who decides.

    Raises:
        ReplayError: a task fits into no request or on no node, or no request is possible.
    """
    check_place(cluster, terms)
    check_grid_job(runtimes, terms, cluster.processors)
    return _GridJob(cluster, runtimes, terms, make, decider).run()


class _GridJob:
    """One bag at one site: when the site steps, and what becomes of the pilots in between."""

    def __init__(
        self, cluster: Cluster, runtimes: Array, terms: GridTerms, make: MakeTasks, decider: Decider
    ) -> None:
        self._cluster, self._terms, self._runtimes, self._decider = cluster, terms, runtimes, decider
        self._submitted = self._looked = cluster.now
        self._tasks = make(runtimes, terms, cluster)
        settings = SiteSettings(name=SITE, rules=terms.rules, heuristic=terms.heuristic)
        place = ScenePlace(settings=settings, jobs=cluster.jobs, processors=cluster.processors)
        self._site = SimulatedSite(place, cluster, self._queue)
        self._driver = SimulatedDriver(
            {SITE: self._site}, self._tasks.board, {SITE: _CREDIT}, decider=self._decide
        )
        self._memory = self._driver.sites[SITE]
        self._width = min(terms.rules.limits.max_proc, cluster.processors)
        self._asks_for_all = terms.static_maximum and terms.traits.fixed_shape
        self._served: dict[int, Served] = {}
        """By pilot that has run."""
        self._withheld = ""
        self._again = False
        """Whether the last decision changed or withdrew a request: the site then steps again."""

    def run(self) -> GridResult:
        self._act(wanted=True)
        while not self._tasks.ended:
            self._act(wanted=self._advance())
        failed = self._tasks.failed
        return GridResult(
            submitted=self._submitted,
            turnaround=self._tasks.last_end - self._submitted,
            # One that starts with the end of the last task is of no use, and not counted.
            requests=tuple(self._request(pilot) for _, pilot in sorted(self._driver.ended.items())),
            work=int(self._runtimes.sum() - self._runtimes[failed].sum()) * self._terms.task.processors,
            failed=len(failed),
        )

    def _request(self, pilot: Pilot) -> GridRequest:
        served, crafted = self._served.get(pilot.id, Served()), self._driver.crafted[pilot.id]
        assert pilot.job is not None
        assert pilot.ended is not None
        return GridRequest(
            job=int(pilot.job),
            p=pilot.request.p,
            tr=pilot.request.tr,
            submitted=int(pilot.submitted),
            predicted_start=crafted.predicted_start,
            started=None if pilot.started is None else int(pilot.started),
            ended=int(pilot.ended),
            tasks=served.tasks,
            work=served.work,
            reason=crafted.reason,
            reshaped=self._driver.reshaped[pilot.id],
        )

    def _advance(self) -> bool:
        """Go on to the next second in which something happens to a pilot or is learned.

        Returns whether the estimated runtime has changed, or the site is to look again.
        """
        look = min(self._next_try(), self._next_look(), NEVER - 1)
        if not self._site.in_system and look == NEVER - 1:
            raise ReplayError(f"no request is made for the waiting tasks: {self._withheld}")
        self._cluster.advance_to_change(self._tasks.ahead(int(min(look, self._site.next_cut()))))
        return self._tasks.settle(self._cluster.now) or self._cluster.now >= look

    def _next_try(self) -> int:
        """When requests are made again, after failures or when those of an hour are used up; NEVER: now."""
        now, allowance = self._cluster.now, self._memory.submissions.allowance(self._cluster.now)
        tries = [self._memory.next_try(now), allowance.again if allowance.left == 0 else math.inf]
        return NEVER if math.isinf(min(tries)) else math.ceil(min(tries))

    def _next_look(self) -> int:
        """When to look at the queue again though nothing has happened to a pilot."""
        if not self._terms.traits.replans:
            return NEVER
        return self._looked + max(60, (self._looked - self._submitted) // 32)

    def _act(self, *, wanted: bool) -> None:
        """Step if wanted, and again until nothing more happens in this second."""
        while self._observe() or wanted:
            wanted = self._step()

    def _step(self) -> bool:
        """Returns whether a request was changed or withdrawn."""
        self._looked, self._again = self._cluster.now, False
        if self._can_act():
            self._driver.step(SITE, float(self._cluster.now))
        return self._again

    def _can_act(self) -> bool:
        """Whether there is a request to take back or one more allowed: the planner has no other means."""
        may_end = self._terms.traits.replans and self._terms.rules.may_withdraw
        most = self._terms.rules.limits.max_pending_requests
        return may_end or self._site.in_system < most or self._site.some_queued

    def _observe(self) -> bool:
        """Take in what happens to the pilots in this second; whether any has started or left."""
        happened = False
        while self._leave() or self._look():
            happened = True
        return happened

    def _look(self) -> bool:
        """Returns whether a pilot has started."""
        started = False
        for change in self._site.changes():
            if change.end is None:
                self._start(change)
                started = True
            elif change.end is JobState.CANCELLED and self._memory.pilots[change.pilot].started is not None:
                self._note(change.pilot, self._tasks.end_pilot(change.pilot, self._cluster.now))
        return started

    def _start(self, change: Change) -> None:
        request = change.request
        self._tasks.add_pilot(change.pilot, request.p, change.at, change.at + request.tr)
        self._driver.called(SITE, change.pilot, float(change.at))

    def _leave(self) -> bool:
        """Pilots whose workers have left end; whether there were any."""
        left = self._tasks.leave(self._cluster.now)
        for pilot in sorted(left):
            self._note(pilot, left[pilot])
            self._site.leave(pilot)
        return bool(left)

    def _note(self, pilot: int, served: Served) -> None:
        self._served[pilot] = served
        self._memory.change(self._memory.pilots[pilot], worked=served.tasks + served.cut > 0)

    def _queue(self) -> QueueState:
        if self._terms.traits.replans and isinstance(self._cluster, Simulation):
            return queue_state(self._cluster)
        return queue_for(self._cluster, self._terms)

    def _decide(self, snapshot: Snapshot) -> Decision:
        decision = self._decider(snapshot)
        for action in decision.actions:
            self._again |= isinstance(action, Withdraw | Reshape)
            if isinstance(action, Withhold):
                self._withheld = action.reason
        if not self._asks_for_all:
            return decision
        return msgspec.structs.replace(decision, actions=tuple(map(self._for_all, decision.actions)))

    def _for_all(self, action: Action) -> Action:
        """A request asks for all processors that it may."""
        if not isinstance(action, SubmitRequest | Reshape):
            return action
        request = Request(self._width, action.crafted.request.tr)
        crafted = msgspec.structs.replace(action.crafted, request=request)
        return msgspec.structs.replace(action, crafted=crafted)
