"""Tasks whose bag is the scheduling core: `SimulatedWorkers` at one site, one worker per pilot."""

from __future__ import annotations

import heapq
import math

from adaptor.bag_spec import BagSpec
from adaptor.model import AttemptOutcome, TaskState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.changes import AttemptEnd
from adaptor.scheduling.state import SiteTerms
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.grid_job import GridTerms
from adaptor_simulation.kernels import Array
from adaptor_simulation.pilot_requests import slots_of
from adaptor_simulation.tasks.protocol import BAG, SITE, Served
from adaptor_simulation.worker import Attempt, PilotPlace
from adaptor_simulation.workers import Event, SimulatedWorkers, TaskEnded, WorkerLeft

_HEARTBEAT = 5.0
"""Seconds between two reports of a worker, at most; none is needed where messages take no time."""

_UNLIMITED = 1 << 62  # bytes of a pilot for tasks whose memory is not counted


class BrokerTasks:
    """`Tasks` of the broker of the daemon, which is their board."""

    def __init__(self, runtimes: Array, terms: GridTerms, cluster: Cluster) -> None:
        self._runtimes = runtimes.tolist()
        self._terms, self._cluster = terms, cluster
        self.board = Broker({SITE: site_terms(terms)})
        workers = terms.workers
        self._workers = SimulatedWorkers(
            self.board,
            idle_timeout={SITE: workers.idle_timeout},
            heartbeat=_HEARTBEAT + 2 * workers.latency if workers.latency else math.inf,
        )
        spec = BagSpec(
            name="",
            cwd="",
            output="",
            environment={},
            replicas=terms.replicas,
            cpus=terms.task.processors,
            memory=terms.task.memory,
            allocation=terms.allocation,
        )
        self._bag = Bag(BAG, spec, len(runtimes))
        self._bag.fill()
        if terms.earlier is not None:
            self._bag.earlier = {SITE: terms.earlier}
        self._workers.add_bag(self._bag, lambda key, _: Attempt(self._runtimes[key.task]), cluster.now)
        self._learner = self.board.state.learner(BAG, SITE)
        self._served: dict[int, Served] = {}  # by pilot that has not left
        self._left: list[int] = []
        self._calls: list[
            tuple[int, int, PilotPlace]
        ] = []  # when the workers of pilots that have started call
        self.failed: list[int] = []
        self.last_end = cluster.now

    @property
    def ended(self) -> bool:
        return self._bag.ended

    @property
    def waiting(self) -> int:
        return self._bag.count(TaskState.WAITING)

    def add_pilot(self, pilot: int, processors: int, started: int, deadline: int) -> None:
        memory = slots_of(self._cluster, self._terms, processors) * (self._terms.task.memory or 0)
        place = PilotPlace(
            pilot=pilot,
            site=SITE,
            processors=processors,
            deadline=deadline,
            memory=memory or _UNLIMITED,
        )
        self._served[pilot] = Served()
        heapq.heappush(self._calls, (started + self._terms.workers.boot, pilot, place))
        self._advance(started)

    def end_pilot(self, pilot: int, now: int) -> Served:
        self._calls = sorted(call for call in self._calls if call[1] != pilot)
        self._workers.end_pilot(pilot, now)
        self._advance(now)
        if pilot in self._left:  # else its worker had not called yet
            self._left.remove(pilot)
        return self._forget(pilot)

    def ahead(self, until: int) -> int:
        calls = [at for at, _, _ in self._calls[:1]]
        return math.ceil(min(self._workers.next_event(), until, *calls))

    def settle(self, now: int) -> bool:
        before = self._learner.estimate
        self._advance(now)
        return self._learner.estimate != before

    def leave(self, now: int) -> dict[int, Served]:
        self._advance(now)
        if self.ended:
            self._left += [pilot for _, pilot, _ in self._calls]
            self._calls.clear()
        left, self._left = self._left, []
        return {pilot: self._forget(pilot) for pilot in left}

    def _advance(self, now: int) -> None:
        """Let all happen up to and including `now`."""
        while self._calls and self._calls[0][0] <= now:
            at, _, place = heapq.heappop(self._calls)
            self._workers.start(place, at)
        self._take_in(self._workers.advance(now))

    def _forget(self, pilot: int) -> Served:
        self.board.forget_pilot(pilot)
        return self._served.pop(pilot)

    def _take_in(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case AttemptEnd(pilot=int(pilot), wall=wall) if wall is not None:
                    self._note(self._served[pilot], event, wall)
                case TaskEnded():
                    self.last_end = max(self.last_end, math.ceil(event.at))
                    if event.state is TaskState.FAILED:
                        self.failed.append(event.task)
                case WorkerLeft():
                    self._left.append(event.pilot)

    def _note(self, served: Served, end: AttemptEnd, wall: float) -> None:
        processors = self._terms.task.processors
        if end.outcome is AttemptOutcome.DONE:
            served.tasks += 1
            served.work += self._runtimes[end.key.task] * processors
        else:
            served.cut += 1
            served.lost += int(wall) * processors


def site_terms(terms: GridTerms) -> SiteTerms:
    """The terms of a grid job as the broker knows them."""
    workers = terms.workers
    return SiteTerms(
        initial_tr=terms.initial_tr,
        growth_factor=terms.growth_factor,
        longest=terms.possible,
        last=workers.last,
        latency=workers.latency,
        reserve=workers.reserve,
        donation=terms.donation,
        even_odds=terms.traits.even_odds,
    )
