"""A bag on donated processors, alone or beside formal requests, on a simulated cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Issue, PilotView, PlanningView, Withdraw
from adaptor.donation.deciding import decide
from adaptor.donation.hours import DAY, closes
from adaptor.donation.situation import (
    Allocation,
    DonatedUse,
    DonationDemand,
    DonationRules,
    DonationState,
    LeaveNodes,
    NodeUse,
    NodeView,
    UseNodes,
)
from adaptor.model import PilotState, RunningJob
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.donation.processors import OWNER, PLANNED, SINCE, UNTIL, USED, Processors
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.grid_job import INSTANT_WORKERS, GridTerms, check_grid_job
from adaptor.simulation.kernels import NEVER, Array
from adaptor.simulation.queue_view import planned_queue
from adaptor.simulation.tasks.choice import in_numbers, to_use
from adaptor.simulation.tasks.kernel_tasks import tasks_of
from adaptor.simulation.tasks.protocol import SITE, MakeTasks, Served, Tasks

INTERVAL = 600
"""Seconds after which the donation looks again where nothing has happened: nodes have become older."""
_NO_HOPE = 40 * 86400
"""Seconds without any event on an idle cluster after which no node will be used any more: it is older then
than the learned ages (`adaptor.donation.idleness.EDGES`), and each hour of the day has been."""


class DonationResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a bag went; times in seconds, the rest in processor-seconds."""

    turnaround: int
    failed: int
    """Tasks that were cut although they had all the time that a request can hold."""
    used: int
    """Of donated processors, whether a task finished there or not."""
    donated: int
    """Of the runtimes of tasks that finished on donated processors."""
    lost: int
    """Of tasks that were ended because their donated processor was taken, or its pilot's time was up."""
    reclaims: int
    """Donated processors that were taken by a job."""
    held: int
    """By pilots of formal requests."""
    requests: int


def run_donation(
    place: Processors[Simulation],
    runtimes: Array,
    terms: GridTerms,
    rules: DonationRules,
    allocation: Allocation,
    make: MakeTasks = tasks_of,
) -> DonationResult:
    """Run a bag that is submitted now, to its last task; the cluster's clock moves on.

    The donation decides when a job starts or ends, when something was learned, and every ten minutes
    while tasks wait; the hours of the day are counted from second 0 of the trace.

    With `transparent` the cluster is never told of the bag. With `mixed` the planner makes requests for
    what donated processors do not take, as `run_grid_job` does. The planner sees what the daemon's sees:
    a donated processor is held by a job that ends with the pilot that uses it, so requests are made for
    other processors. Donated tasks yield to our own pilots as they do to local jobs.

    Args:
        place: of a fork, with the cluster that the bag finds.

    Raises:
        ReplayError: a task fits into no request, or nothing more would ever happen; the workers of `terms`
            are not instant.
    """
    if terms.workers != INSTANT_WORKERS:
        raise ReplayError("donated processors are simulated with instant workers only")
    check_grid_job(runtimes, terms, place.cluster.processors)
    terms = msgspec.structs.replace(terms, donation=rules, allocation=allocation)
    return _Driver(place, make(runtimes, terms, place.cluster), terms, rules).run()


class _Driver:
    def __init__(
        self, place: Processors[Simulation], tasks: Tasks, terms: GridTerms, rules: DonationRules
    ) -> None:
        self._place, self._cluster, self._terms, self._rules = place, place.cluster, terms, rules
        self._tasks, self._formal = tasks, terms.allocation != "transparent"
        self._pilots: dict[int, PilotView] = {}
        self._donated: dict[int, int] = {}
        """By pilot on a donated processor: the processor."""
        self._pilot_on: dict[int, int] = {}
        """By processor."""
        self._planned = place.lot[PLANNED].copy()
        """What is planned on each processor, as the tasks know it."""
        self._made = 0
        self._idle: list[int] = []
        """Pilots of requests whose workers have left."""
        self._cut_at_limit = False
        """Whether tasks of one of them were cut just now: the planner is not asked for that alone."""
        self._held = self._requests = self._reclaims = 0
        self._served = Served()
        """On donated processors."""
        self._happened = self._cluster.now

    def run(self) -> DonationResult:
        submitted = self._cluster.now
        self._settle(wanted=True)
        while not self._tasks.ended:
            self._settle(wanted=self._advance())
        self._collect()
        for job in list(self._pilots):
            self._cluster.cancel(job)
            self._forget(job)
        return DonationResult(
            turnaround=self._tasks.last_end - submitted,
            failed=len(self._tasks.failed),
            held=self._held,
            requests=self._requests,
            used=self._served.work + self._served.lost,
            donated=self._served.work,
            lost=self._served.lost,
            reclaims=self._reclaims,
        )

    def _advance(self) -> bool:
        """Go on to the next second in which something happens on the cluster, or is learned.

        Returns whether the estimated runtime has changed, or tasks on donated processors were cut.
        """
        tasks, cluster = self._tasks, self._cluster
        coming = cluster.next_event()
        stop = min([NEVER if coming is None else coming, *self._place.ends()])
        self._check_hope(stop)
        if tasks.waiting and self._place.some_unused:
            stop = min(stop, cluster.now + INTERVAL, *self._openings())
        stop, longest = min(stop, NEVER - 1), tasks.learned.longest
        while True:
            now = tasks.ahead(stop)
            cluster.advance(now)
            changed = tasks.settle(now)
            cut = self._collect()
            if self._idle or cut or changed or now == stop or tasks.learned.longest > longest:
                return cut or (changed and not self._cut_at_limit)

    def _openings(self) -> Iterator[int]:
        """When the hours in which nodes may be used begin next."""
        for part in self._rules.hours:
            since = (self._cluster.now - part.begin) % DAY
            yield self._cluster.now + math.ceil(DAY - since)

    def _check_hope(self, coming: int) -> None:
        """Raises ReplayError where an idle cluster has not been used for long."""
        if coming < NEVER or len(self._place.used) or self._pilots:
            self._happened = self._cluster.now
        elif self._cluster.now - self._happened > _NO_HOPE:
            raise ReplayError("the rules of the donation leave no node on which the waiting tasks fit")

    def _settle(self, *, wanted: bool) -> None:
        """Take in what the cluster did and decide, until nothing more happens in this second."""
        again = True
        while again:
            wanted |= self._take_in()
            start = self._next_start()
            self._tasks.board.expect_requests(SITE, {} if start is None else {None: float(start)})
            self._use_nodes()
            again = self._leave()
            if self._formal and (wanted or not self._pilots) and self._tasks.waiting:
                again |= self._plan()
            wanted = False

    def _take_in(self) -> bool:
        """Ends and starts of jobs; whether to ask the planner."""
        place, now = self._place, self._cluster.now
        ended, started = place.changes()
        for job in ended:
            place.vacate(job)
            self._forget(job)
        ours = any(job in self._pilots for job in started)
        begun: list[tuple[int, int, list[int]]] = []
        for job in started:
            deadline = self._begun(job)
            place.learn(job, local=deadline is None)
            places = place.places_of(job).tolist()
            for pilot in [self._pilot_on[p] for p in places if p in self._pilot_on]:
                self._reclaims += 1
                self._give_back(pilot, self._tasks.end_pilot(pilot, now))
                ours = True
            place.seat(job)
            if deadline is not None:
                begun.append((job, deadline, places))
        for job, deadline, places in begun:
            self._tasks.add_pilot(job, len(places), now, deadline, places)
        return ours

    def _begun(self, job: int) -> int | None:
        """The deadline of a pilot that has started; None for a local job."""
        pilot = self._pilots.get(job)
        if pilot is None:
            return None
        start, limit, processors = self._cluster.started_job(job)
        self._pilots[job] = msgspec.structs.replace(
            pilot,
            state=PilotState.RUNNING,
            started=float(start),
            ends=float(start + limit),
            processors=processors,
        )
        return start + limit

    def _next_start(self) -> int | None:
        """When the first of the waiting requests is predicted to start; None: none is."""
        waiting = (pilot.predicted_start for pilot in self._pilots.values() if pilot.started is None)
        starts = [start for start in waiting if start is not None]
        return math.ceil(min(starts)) if starts else None

    def _forget(self, job: int) -> None:
        pilot = self._pilots.pop(job, None)
        if pilot is not None and pilot.started is not None:
            self._held += pilot.request.p * (self._cluster.now - int(pilot.started))

    # --- donated processors ----------------------------------------------------------------------

    def _use_nodes(self) -> None:
        """Do what the donation decides now."""
        place, board = self._place, self._tasks.board
        lot, now = place.lot, self._cluster.now
        board.learn_hazard(SITE, place.learner.hazard)
        demands = [demand.wanted for demand in board.donation_demands(SITE)]
        if demands:
            place.plan_ahead()
        closing = closes(self._rules.hours, float(now), 0.0)
        used = place.used
        if in_numbers(self._rules):  # what is planned there is all that changes
            used = used[lot[PLANNED, used] != self._planned[used]]
        for p in used.tolist():
            board.use_node(self._pilot_on[p], self._node(p, closing))
        self._planned = lot[PLANNED].copy()
        if in_numbers(self._rules):
            found = to_use(lot, now, place.learner.hazard, self._rules, demands)
            uses = dict.fromkeys(found.tolist(), math.inf)
            if self._rules.choose != "all":
                uses = {p: _time(lot[PLANNED, p]) for p in uses}
        else:
            uses = self._decided(demands)
        for p, until in sorted(uses.items(), reverse=True):
            self._use(p, until, closing)
        self._collect()

    def _decided(self, demands: Sequence[DonationDemand]) -> dict[int, float]:
        """By processor to use now: until when it may be."""
        state = DonationState(
            now=float(self._cluster.now),
            nodes=tuple(self._node_view(p) for p in range(self._cluster.processors)),
            rules=self._rules,
            demands=tuple(demands),
            midnight=0.0,
        )
        uses: dict[int, float] = {}
        for decision in decide(state, self._place.learner.hazard):
            match decision:
                case UseNodes():
                    uses |= dict.fromkeys(map(int, decision.nodes), decision.until)
                case LeaveNodes():
                    for name in decision.nodes:
                        pilot = self._pilot_on[int(name)]
                        self._give_back(pilot, self._tasks.end_pilot(pilot, self._cluster.now))
        return uses

    def _node_view(self, p: int) -> NodeView:
        lot = self._place.lot
        used = float(lot[USED, p])
        return NodeView(
            name=str(p),
            processors=1,
            use=NodeUse.TAKEN if lot[OWNER, p] >= 0 else NodeUse.IDLE,
            since=float(lot[SINCE, p]),
            planned=_time(lot[PLANNED, p]),
            donated=DonatedUse(since=used, busy=1) if used >= 0 else None,
        )

    def _node(self, p: int, closing: float) -> DonatedNode:
        lot = self._place.lot
        until = min(_time(lot[PLANNED, p]), closing)
        return DonatedNode(since=float(lot[SINCE, p]), until=until, closes=closing)

    def _use(self, p: int, until: float, closing: float) -> None:
        """A pilot on a donated processor, for as long as it may be."""
        lot, now = self._place.lot, self._cluster.now
        self._made -= 1  # jobs of the cluster have numbers from 0 on
        pilot, ends = self._made, int(min(now + self._terms.rules.limits.max_tr, until))
        lot[USED, p], lot[UNTIL, p] = now, ends
        self._donated[pilot], self._pilot_on[p] = p, pilot
        self._tasks.board.use_node(pilot, self._node(p, closing))
        self._tasks.add_pilot(pilot, 1, now, ends, (p,))

    def _give_back(self, pilot: int, served: Served) -> None:
        p = self._donated.pop(pilot)
        del self._pilot_on[p]
        self._place.lot[USED, p] = -1
        self._served.work += served.work
        self._served.lost += served.lost

    def _collect(self) -> bool:
        """Give back the donated processors without a worker; whether tasks were cut there."""
        cut = self._cut_at_limit = False
        for pilot, served in self._tasks.leave(self._cluster.now).items():
            if pilot in self._donated:
                self._give_back(pilot, served)
                cut |= served.cut > 0
            else:
                self._idle.append(pilot)
                self._cut_at_limit |= served.cut > 0
        return cut

    def _leave(self) -> bool:
        """End the pilots whose workers have left; whether there were any."""
        idle, self._idle = [job for job in self._idle if job in self._pilots], []
        for job in idle:
            if self._cluster.outside_job(job).ended is None:
                self._cluster.end(job, self._cluster.now)
        return bool(idle)

    def _plan(self) -> bool:
        """Ask the planner and do as it says; whether the cluster has something new."""
        done = False
        for decision in plan(self._view()):
            if isinstance(decision, Issue):
                request = decision.crafted.request
                job = self._cluster.submit(request.p, request.tr)
                self._pilots[job] = PilotView(
                    id=job,
                    state=PilotState.QUEUED,
                    request=request,
                    predicted_start=decision.crafted.predicted_start,
                )
                self._requests += 1
                done = True
            elif isinstance(decision, Withdraw):
                self._cluster.cancel(decision.pilot)
                self._forget(decision.pilot)
                done = True
        return done

    def _view(self) -> PlanningView:
        queue = planned_queue(self._cluster)
        donated = tuple(
            RunningJob(f"donated until {end}", processors, float(end))
            for end, processors in self._place.ends().items()
        )
        if donated:
            queue = msgspec.structs.replace(queue, running=(*queue.running, *donated))
        return PlanningView(
            now=float(self._cluster.now),
            queue=queue,
            rules=self._terms.rules,
            heuristic=self._terms.heuristic,
            pilots=tuple(self._pilots.values()),
            demands=self._tasks.board.demands(SITE),
        )


def _time(second: int) -> float:
    """When a job is planned on a processor."""
    return math.inf if second == NEVER else float(second)
