"""A bag that pays for its pilots at one simulated site: the broker, the planner and the ledger of the daemon.

The machine is free but for the bag's own pilots. A pilot starts as soon as its processors are free, its
worker is there after a start-up, and it leaves when it has been idle, or when no task is left. Nothing
fails; replicas are made in time that is paid, as in the daemon.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.cost_shares import Use
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.estimation.bag_knowledge import (
    BagKnowledge,
    BagTasks,
    PilotKnowledge,
    bag_knowledge,
)
from adaptor.budget.estimation.runtime_sums import Sums
from adaptor.budget.provisioning.hosts import Hosts
from adaptor.budget.provisioning.pacing import Course, advise, terms_for
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, Issue, PilotView, PlanningView, SiteRules, Withdraw
from adaptor.model import (
    CraftedRequest,
    Limits,
    PilotState,
    Preference,
    QueueState,
    Request,
    RunningJob,
    TaskState,
)
from adaptor.protocol.messages import LAST_SECONDS, AttemptKey, Ending, Hello, Leaving, Report, Result
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.orders import DraftOrders
from adaptor.scheduling.state import Meter, SiteTerms

SITE = "site"
BEGIN = 1.7e9
"""Epoch seconds of the submission."""
_SLACK = 10.0
_BAG = 1


class SiteSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The simulated site; times in seconds."""

    processors: int = 32
    limits: Limits = Limits(max_pending_requests=6, max_proc=16, max_tr=4 * 3600)
    pad: float = 30.0
    startup: float = 15.0
    """From the start of a pilot to the Hello of its worker."""
    idle_timeout: float = 60.0
    initial_tr: float = 600.0
    poll: float = 30.0
    tariff: Tariff


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a bag went."""

    cost: float
    """Credits."""
    end: float
    """Epoch seconds of the last result."""
    told: tuple[BagKnowledge, ...]
    """What was known at the moments that were asked for, as far as the bag got there."""


class _Pilot:
    def __init__(self, number: int, request: Request, predicted_start: float | None) -> None:
        self.number, self.request, self.predicted_start = number, request, predicted_start
        self.started: float | None = None
        self.useful = 0.0
        """Processor-seconds."""

    def view(self) -> PilotView:
        running = self.started is not None
        return PilotView(
            id=self.number,
            state=PilotState.RUNNING if running else PilotState.QUEUED,
            request=self.request,
            started=self.started,
            ends=self.started + self.request.tr if self.started is not None else None,
            bag=_BAG,
        )


class _Worker:
    def __init__(self, pilot: _Pilot) -> None:
        self.pilot, self.processors = pilot, pilot.request.p
        self.deadline = (pilot.started or 0.0) + pilot.request.tr
        self.queue: list[tuple[AttemptKey, float]] = []
        self.running: dict[AttemptKey, float] = {}
        self.results: list[Result] = []
        self.idle_since: float | None = None

    @property
    def id(self) -> str:
        return str(self.pilot.number)


_WORKER_READY, _TASK_END, _TIME_UP, _IDLE, _POLL = range(5)


class SiteRun:
    """One bag; `runtimes` (seconds) are in the order in which tasks are taken."""

    def __init__(
        self,
        runtimes: Sequence[float],
        settings: SiteSettings,
        prefer: Preference | None,
        moments: Sequence[int],
    ) -> None:
        """`moments`: after so many finished tasks it is written down what is known."""
        self._runtimes, self._settings = runtimes, settings
        self._now = BEGIN
        self._count = itertools.count(1)
        self._events: list[tuple[float, int, int, object]] = []
        self._pilots: dict[int, _Pilot] = {}
        self._workers: dict[str, _Worker] = {}
        self._finished: list[float] = []
        self._moments = sorted(moments)
        self._told: list[BagKnowledge] = []
        self._end = BEGIN
        self._ledger = Ledger()
        self._ledger.set_price(SITE, settings.tariff, BEGIN)
        longest = settings.limits.max_tr - settings.pad
        self._broker = Broker(
            {SITE: SiteTerms(initial_tr=settings.initial_tr, growth_factor=2, longest=longest)}
        )
        spec = BagSpec(name="", cwd="", output="", environment={}, prefer=prefer)
        self._bag = Bag(_BAG, spec, len(runtimes))
        self._bag.fill()
        self._broker.keep_apart(_BAG)
        self._broker.add_bag(self._bag, self._now)

    def run(self) -> Outcome:
        self._plan()
        self._at(self._now + self._settings.poll, _POLL, None)
        while not self._bag.ended or self._pilots:
            self._now, kind, _, what = heapq.heappop(self._events)
            self._happen(kind, what)
            self._exchange()
            self._note()
        cost = self._ledger.of_bag(_BAG).used / 1e6
        return Outcome(cost=cost, end=self._end, told=tuple(self._told))

    def _at(self, time: float, kind: int, what: object) -> None:
        heapq.heappush(self._events, (time, kind, next(self._count), what))

    def _happen(self, kind: int, what: object) -> None:
        if kind == _POLL:
            self._plan()
            if not self._bag.ended:
                self._at(self._now + self._settings.poll, _POLL, None)
        elif kind == _TASK_END:
            self._task_ends(what)  # type: ignore[arg-type]
        elif kind == _WORKER_READY:
            self._ready(what)  # type: ignore[arg-type]
        elif kind == _TIME_UP:
            self._leave(what, Leaving.TIME_UP)  # type: ignore[arg-type]
        elif kind == _IDLE:
            self._idle(*what)  # type: ignore[misc]

    def _idle(self, worker: _Worker, since: float) -> None:
        if worker.idle_since == since:
            self._leave(worker, Leaving.IDLE)

    # --- workers

    def _ready(self, pilot: _Pilot) -> None:
        worker = self._workers[str(pilot.number)] = _Worker(pilot)
        hello = Hello(
            pilot=pilot.number, node="n", pid=1, version="", processors=worker.processors, memory=1,
            deadline=worker.deadline,
        )  # fmt: skip
        self._broker.hello(worker.id, hello, SITE, self._now)
        self._at(worker.deadline - LAST_SECONDS, _TIME_UP, worker)
        self._report(worker, [])

    def _task_ends(self, what: tuple[_Worker, AttemptKey, float]) -> None:
        worker, key, started = what
        if self._workers.get(worker.id) is not worker or worker.running.get(key) != started:
            return
        del worker.running[key]
        worker.pilot.useful += self._now - started
        worker.results.append(
            Result(key=key, ending=Ending.EXITED, started=started, wall=self._now - started, exit_code=0)
        )
        self._report(worker, self._start(worker))

    def _start(self, worker: _Worker) -> list[AttemptKey]:
        begun = []
        while worker.queue and len(worker.running) < worker.processors:
            key, needs = worker.queue.pop(0)
            if self._now + needs > worker.deadline:
                worker.results.append(Result(key=key, ending=Ending.RETURNED))
                continue
            worker.running[key] = self._now
            begun.append(key)
            self._at(self._now + self._runtimes[key.task], _TASK_END, (worker, key, self._now))
        return begun

    def _report(self, worker: _Worker, begun: list[AttemptKey]) -> None:
        for result in worker.results:
            if result.ending is Ending.EXITED and not self._bag.state(result.key.task).ended:
                self._finished.append(result.wall)
                self._end = self._now
        report = Report(
            results=worker.results,
            started=begun,
            free_processors=worker.processors - len(worker.running) - len(worker.queue),
            free_memory=1,
            queued=len(worker.queue),
        )
        worker.results = []
        self._broker.report(worker.id, report, self._now)

    def _exchange(self) -> None:
        """Orders and answers until nobody has anything to say."""
        while True:
            _, drafts = self._broker.drain()
            changed = False
            for id, draft in drafts.items():
                worker = self._workers.get(id)
                if worker is not None and self._obey(worker, draft):
                    changed = True
            if not changed:
                break
        for worker in list(self._workers.values()):
            self._watch_idle(worker)

    def _obey(self, worker: _Worker, draft: DraftOrders) -> bool:
        worker.queue += [(grant.key, grant.needs) for grant in draft.grants]
        for key in draft.abort:
            started = worker.running.pop(key, None)
            if started is not None:
                ended = Result(key=key, ending=Ending.ABORTED, started=started, wall=self._now - started)
                worker.results.append(ended)
        for key in [*draft.give_back, *draft.abort]:
            if any(key == queued for queued, _ in worker.queue):
                worker.queue = [each for each in worker.queue if each[0] != key]
                worker.results.append(Result(key=key, ending=Ending.RETURNED))
        begun = self._start(worker)
        if begun or worker.results:
            self._report(worker, begun)
            return True
        return False

    def _watch_idle(self, worker: _Worker) -> None:
        if worker.running or worker.queue:
            worker.idle_since = None
        elif not self._broker.has_work_in(worker.pilot.number, SITE):
            self._leave(worker, Leaving.TOLD)
        elif worker.idle_since is None:
            worker.idle_since = self._now
            self._at(self._now + self._settings.idle_timeout, _IDLE, (worker, self._now))

    def _leave(self, worker: _Worker, why: Leaving) -> None:
        if self._workers.pop(worker.id, None) is not worker:
            return
        results = [Result(key=key, ending=Ending.RETURNED) for key, _ in worker.queue]
        results += [
            Result(key=key, ending=Ending.ENDED, started=started, wall=self._now - started)
            for key, started in worker.running.items()
        ]
        pilot = worker.pilot
        self._broker.goodbye(worker.id, why, results, self._now)
        self._broker.meter(pilot.number, None)
        self._broker.forget_pilot(pilot.number)
        del self._pilots[pilot.number]
        uses = {_BAG: Use(useful=pilot.useful)}
        self._ledger.settle(pilot.number, pilot.started, self._now, uses, self._now)
        self._start_pilots()

    # --- pilots

    def _free(self) -> int:
        held = sum(each.request.p for each in self._pilots.values() if each.started is not None)
        return self._settings.processors - held

    def _start_pilots(self) -> None:
        for pilot in list(self._pilots.values()):
            if pilot.started is None:
                if pilot.request.p > self._free():
                    return
                self._start_pilot(pilot)

    def _start_pilot(self, pilot: _Pilot) -> None:
        pilot.started = self._now
        settings = self._settings
        unit = float(settings.tariff.charging_unit)
        meter = Meter(started=self._now, unit=unit, spare=settings.idle_timeout + _SLACK)
        self._broker.meter(pilot.number, meter)
        self._at(self._now + settings.startup, _WORKER_READY, pilot)

    def _plan(self) -> None:
        settings = self._settings
        if self._bag.ended:
            return
        demands = tuple(self._aimed(each) for each in self._broker.demands(SITE))
        running = tuple(
            RunningJob(str(each.number), each.request.p, each.started + each.request.tr)
            for each in self._pilots.values()
            if each.started is not None
        )
        view = PlanningView(
            now=self._now,
            queue=QueueState(now=self._now, processors=settings.processors, running=running),
            rules=SiteRules(limits=settings.limits, pad=settings.pad),
            heuristic="adaptive",
            pilots=tuple(each.view() for each in self._pilots.values()),
            demands=demands,
        )
        for decision in plan(view):
            if isinstance(decision, Issue):
                self._issue(decision.crafted)
            elif isinstance(decision, Withdraw):
                del self._pilots[decision.pilot]
                self._ledger.settle(decision.pilot, None, self._now, {}, self._now)
        self._start_pilots()

    def _issue(self, crafted: CraftedRequest) -> None:
        number, request = next(self._count), crafted.request
        self._pilots[number] = _Pilot(number, request, crafted.predicted_start)
        self._broker.own_pilot(number, _BAG)
        self._ledger.reserve(number, SITE, request, "explicit", {_BAG: 1.0}, self._now)

    def _aimed(self, demand: Demand) -> Demand:
        """With the cap of the bag's preference, as the daemon puts it; a mere budget caps nothing here."""
        if not self._bag.spec.aims:
            return demand
        advice = advise(self._course())
        return msgspec.structs.replace(demand, most=advice.hosts, why_most=advice.reason)

    def _course(self) -> Course:
        settings, starts = self._settings, self._broker.starts(_BAG)
        return Course(
            now=self._now,
            tasks=self._bag.total,
            sums=Sums(
                finished=self._bag.count(TaskState.DONE),
                total=self._bag.runtime,
                squares=self._bag.squares,
                running=len(starts),
                starts=sum(starts),
            ),
            hosts=[
                Hosts(each.request.p, start + settings.pad, start + each.request.tr)
                for each in self._pilots.values()
                for start in [self._now if each.started is None else each.started]
            ],
            terms=terms_for(settings.tariff.charging_unit, settings.pad),
            hint=settings.initial_tr,
            prefer=self._bag.spec.prefer,
        )

    # --- what a user would be told

    def _note(self) -> None:
        while self._moments and len(self._finished) >= self._moments[0] and not self._bag.ended:
            self._moments.pop(0)
            self._told.append(self._knowledge())

    def _knowledge(self) -> BagKnowledge:
        """As the daemon puts it together."""
        sample = self._broker.state.sample(_BAG)
        pilots = [
            PilotKnowledge(
                slots=each.request.p,
                started=each.started,
                predicted_start=each.predicted_start,
                granted=float(each.request.tr),
                reserved=self._ledger.open_pilots.get(each.number),
            )
            for each in self._pilots.values()
        ]
        return bag_knowledge(
            BagTasks(
                total=self._bag.total,
                done=self._bag.count(TaskState.DONE),
                runtimes=sample.runtimes,
                every=sample.every,
                started=self._broker.starts(_BAG),
            ),
            pilots,
            used=self._ledger.of_bag(_BAG).used,
            tariffs=[self._settings.tariff],
            kind="explicit",
            startup=self._settings.pad,
            now=self._now,
            most=self._settings.processors,
        )
