"""A bag on donated processors, alone or beside formal requests, on a simulated cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Issue, PilotView, PlanningView, Withdraw
from adaptor.donation.hours import DAY
from adaptor.donation.situation import Allocation, DonationRules, Hours
from adaptor.model import PilotState, RunningJob
from adaptor.simulation.cluster import Simulation
from adaptor.simulation.donation.bag import BagFactory, DonationBag
from adaptor.simulation.donation.core_bag import CoreBag
from adaptor.simulation.donation.kernel_bag import KernelBag, follows_core
from adaptor.simulation.donation.processors import Processors
from adaptor.simulation.errors import ReplayError
from adaptor.simulation.grid_job import INSTANT_WORKERS, GridTerms, check_grid_job
from adaptor.simulation.kernels import NEVER, Array
from adaptor.simulation.queue_view import planned_queue

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


def bag_of(
    place: Processors[Simulation],
    runtimes: Array,
    terms: GridTerms,
    rules: DonationRules,
    allocation: Allocation,
) -> DonationBag:
    """A bag on the kernels where they know the rules, else on the scheduling core."""
    make: BagFactory = KernelBag if follows_core(terms, rules) else CoreBag
    return make(place, runtimes, terms, rules, allocation)


def run_donation(
    place: Processors[Simulation],
    runtimes: Array,
    terms: GridTerms,
    rules: DonationRules,
    allocation: Allocation,
    make: BagFactory = bag_of,
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
    bag = make(place, runtimes, terms, rules, allocation)
    return _Driver(place, bag, terms, rules.hours, formal=allocation != "transparent").run()


class _Driver:
    def __init__(
        self,
        place: Processors[Simulation],
        bag: DonationBag,
        terms: GridTerms,
        hours: tuple[Hours, ...],
        *,
        formal: bool,
    ) -> None:
        self._place, self._cluster, self._terms, self._formal = place, place.cluster, terms, formal
        self._bag, self._hours = bag, hours
        self._pilots: dict[int, PilotView] = {}
        self._held = self._requests = 0
        self._happened = self._cluster.now

    def run(self) -> DonationResult:
        bag, submitted = self._bag, self._cluster.now
        self._settle(wanted=True)
        while bag.done < bag.total:
            self._advance()
            self._settle(wanted=self._finish_second())
        for job in list(self._pilots):
            self._cluster.cancel(job)
            self._forget(job)
        return DonationResult(
            turnaround=bag.last_end - submitted,
            failed=bag.failed,
            held=self._held,
            requests=self._requests,
            **bag.figures(bag.last_end),
        )

    def _advance(self) -> None:
        """Go on to the next second in which something happens on the cluster, or is learned."""
        bag, cluster = self._bag, self._cluster
        coming = cluster.next_event()
        stop = min([NEVER if coming is None else coming, *self._place.ends()])
        self._check_hope(stop)
        if bag.waiting and self._place.some_unused:
            stop = min(stop, cluster.now + INTERVAL, *self._openings())
        stop = min(bag.run(min(stop, NEVER - 1)), stop)
        if stop < NEVER:
            cluster.advance(stop)

    def _openings(self) -> Iterator[int]:
        """When the hours in which nodes may be used begin next."""
        for part in self._hours:
            since = (self._cluster.now - part.begin) % DAY
            yield self._cluster.now + math.ceil(DAY - since)

    def _check_hope(self, coming: int) -> None:
        """Raises ReplayError where an idle cluster has not been used for long."""
        if coming < NEVER or len(self._place.used) or self._pilots:
            self._happened = self._cluster.now
        elif self._cluster.now - self._happened > _NO_HOPE:
            raise ReplayError("the rules of the donation leave no node on which the waiting tasks fit")

    def _finish_second(self) -> bool:
        """Let end what ends by now; whether the estimated runtime has changed."""
        bag, now = self._bag, self._cluster.now
        changed = bag.learn()
        bag.fill()
        while bag.run(now) != NEVER:
            changed |= bag.learn()
            bag.fill()
        return bag.learn() or changed

    def _settle(self, *, wanted: bool) -> None:
        """Take in what the cluster did and decide, until nothing more happens in this second."""
        again = True
        while again:
            wanted |= self._take_in()
            self._bag.expect(self._next_start())
            self._bag.use_nodes()
            again = self._leave()
            if self._formal and (wanted or not self._pilots) and self._bag.waiting:
                again |= self._plan()
            wanted = False

    def _take_in(self) -> bool:
        """Ends and starts of jobs and of pilots on donated processors; whether to ask the planner."""
        used = len(self._place.used)
        self._bag.expire()
        ended, started = self._place.changes()
        for job in ended:
            self._bag.end(job)
            self._forget(job)
        ours = any(job in self._pilots for job in (*ended, *started))
        for job in started:
            self._bag.start(job, self._begun(job))
        return ours or len(self._place.used) < used

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

    def _leave(self) -> bool:
        """Pilots without a task leave; whether there were any."""
        idle = [
            job
            for job, pilot in self._pilots.items()
            if pilot.state is PilotState.RUNNING and not self._place.busy(job)
        ]
        for job in idle:
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
            demands=(self._bag.demand(),),
        )
