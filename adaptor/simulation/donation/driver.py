"""A bag on lent processors, alone or beside formal requests, on a simulated cluster."""

from __future__ import annotations

import msgspec

from adaptor.crafting.learning import RuntimeLearner
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Issue, PilotView, SiteView, Withdraw
from adaptor.donation.situation import Allocation, DonationRules
from adaptor.model import PilotState, RunningJob
from adaptor.simulation.donation.processors import Processors
from adaptor.simulation.donation.sharing import Sharing
from adaptor.simulation.grid_job import Terms, check_grid_job
from adaptor.simulation.kernels import NEVER, Array
from adaptor.simulation.queue_view import planned_queue

INTERVAL = 600
"""Seconds after which the donation looks again where nothing has happened: nodes have become older."""
_BEYOND = 1 << 40
"""Seconds of the longest task on lent processors: no limit."""


class SharedResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a bag went; times in seconds, the rest in processor-seconds."""

    turnaround: int
    lent: int
    donated: int
    """Of the runtimes of tasks that finished on lent processors."""
    lost: int
    """Of tasks that were aborted because a local job took their processor."""
    reclaims: int
    """Lent processors that were taken back."""
    held: int
    """By pilots of formal requests."""
    requests: int


def run_shared(
    place: Processors, runtimes: Array, terms: Terms, rules: DonationRules, allocation: Allocation
) -> SharedResult:
    """Run a bag that is submitted now, to its last task; the cluster's clock moves on.

    With `transparent` the cluster is never told of it. With `mixed` the planner makes requests for what
    lent processors do not take, as `run_grid_job` does; what is lent counts as in use then, so that it
    asks for other processors. Donated tasks yield to our own pilots as they do to local jobs.

    Args:
        place: of a fork, with the cluster that the bag finds.

    Raises:
        ReplayError: a task fits into no request, or nothing more would ever happen.
    """
    check_grid_job(runtimes, terms, place.cluster.processors)
    return _Driver(place, runtimes, terms, rules, allocation).run()


class _Driver:
    def __init__(
        self,
        place: Processors,
        runtimes: Array,
        terms: Terms,
        rules: DonationRules,
        allocation: Allocation,
    ) -> None:
        self._place, self._cluster, self._terms = place, place.cluster, terms
        self._formal = allocation != "transparent"
        possible = terms.possible if self._formal else float(_BEYOND)
        learner = RuntimeLearner(initial=terms.initial_tr, factor=terms.growth_factor, longest=possible)
        self._sharing = Sharing(
            place, runtimes, learner, allocation=allocation, rules=rules, possible=possible
        )
        self._pilots: dict[int, PilotView] = {}
        self._held = self._requests = 0

    def run(self) -> SharedResult:
        sharing, submitted = self._sharing, self._cluster.now
        self._settle(wanted=True)
        while sharing.done < sharing.total:
            self._advance()
            self._settle(wanted=self._finish_second())
        for job in list(self._pilots):
            self._cluster.cancel(job)
            self._forget(job)
        figures = sharing.figures(sharing.last_end)
        return SharedResult(
            turnaround=sharing.last_end - submitted, held=self._held, requests=self._requests, **figures
        )

    def _advance(self) -> None:
        """Go on to the next second in which something happens on the cluster, or is learned."""
        sharing, cluster = self._sharing, self._cluster
        coming = cluster.next_event()
        stop = NEVER if coming is None else coming
        if sharing.waiting and sharing.some_unlent:
            stop = min(stop, cluster.now + INTERVAL)
        stop = min(sharing.run(min(stop, NEVER - 1)), stop)
        if stop < NEVER:
            cluster.advance(stop)

    def _finish_second(self) -> bool:
        """Let end what ends by now; whether the estimated runtime has changed."""
        sharing, now = self._sharing, self._cluster.now
        changed = sharing.learn()
        sharing.fill()
        while sharing.run(now) != NEVER:
            changed |= sharing.learn()
            sharing.fill()
        return sharing.learn() or changed

    def _settle(self, *, wanted: bool) -> None:
        """Take in what the cluster did and decide, until nothing more happens in this second."""
        again = True
        while again:
            wanted |= self._take_in()
            self._sharing.lend()
            again = self._leave()
            if self._formal and (wanted or not self._pilots) and self._sharing.waiting:
                again |= self._plan()
            wanted = False

    def _take_in(self) -> bool:
        """Ends and starts of jobs; whether the planner is to be asked."""
        ended, started = self._place.changes()
        for job in ended:
            self._sharing.end(job)
            self._forget(job)
        lent = self._sharing.lent
        ours = False
        for job in started:
            ours |= job in self._pilots
            self._sharing.start(job, self._begun(job))
        return ours or any(job in self._pilots for job in ended) or self._sharing.lent < lent

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

    def _forget(self, job: int) -> None:
        pilot = self._pilots.pop(job, None)
        if pilot is not None and pilot.started is not None:
            self._held += pilot.request.p * (self._cluster.now - int(pilot.started))

    def _leave(self) -> bool:
        """Pilots without a task leave; whether there were any."""
        idle = [
            job
            for job, pilot in self._pilots.items()
            if pilot.state is PilotState.RUNNING and not self._sharing.busy(job)
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
                self._pilots[job] = PilotView(id=job, state=PilotState.QUEUED, request=request)
                self._requests += 1
                done = True
            elif isinstance(decision, Withdraw):
                self._cluster.cancel(decision.pilot)
                self._forget(decision.pilot)
                done = True
        return done

    def _view(self) -> SiteView:
        now, demand, queue = float(self._cluster.now), self._sharing.demand(), planned_queue(self._cluster)
        if self._sharing.lent:
            lent = RunningJob("lent", self._sharing.lent, now + demand.runtime)
            queue = msgspec.structs.replace(queue, running=(*queue.running, lent))
        return SiteView(
            now=now,
            queue=queue,
            rules=self._terms.rules,
            heuristic=self._terms.heuristic,
            pilots=tuple(self._pilots.values()),
            demands=(demand,),
        )
