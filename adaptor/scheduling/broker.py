"""The broker: workers pull the tasks of all bags (De Rose §4.3, Fig. 2). Pure.

Each call collects what has changed, for the journal, and what the workers are to be told; `drain`
hands both over, and the daemon sends only after it has written.
"""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.crafting.situation import Demand, TaskGroup
from adaptor.donation.idleness import Hazard
from adaptor.model import AttemptOutcome
from adaptor.protocol.messages import AttemptKey, Hello, Leaving, Report, Result
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.changes import Changes
from adaptor.scheduling.demand import BagDonationDemand, demands_of, donation_demands, groups_of, sharers_of
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.leasing import dispatch, feed
from adaptor.scheduling.orders import DraftOrders
from adaptor.scheduling.settling import give_up, settle
from adaptor.scheduling.state import Meter, SchedulingState, SiteTerms
from adaptor.scheduling.tail_replication import stop_unpaid_copies
from adaptor.scheduling.workers import Worker

LEASE_TIMEOUT = 15.0
"""Seconds after which a lease that the worker does not mention is asked about."""
_ROUND_TRIPS = 6
"""So many are waited for besides, where messages take long: a lease on its way is not a lost one."""


ALL_ENDED = "all tasks have ended"
"""Why a worker is told to leave when no unfinished task may run in its pilot."""


class Broker:
    def __init__(self, sites: dict[str, SiteTerms]) -> None:
        self.state = SchedulingState(sites)

    def drain(self) -> tuple[Changes, dict[str, DraftOrders]]:
        """What has changed since the last call, and orders by worker id."""
        changes, self.state.changes = self.state.changes, Changes()
        touched, self.state.touched = self.state.touched, {}
        changes.tallies = {bag.id: bag.tally() for bag in touched.values()}
        return changes, self.state.orders.drain()

    # --- bags ----------------------------------------------------------------------------------

    def add_bag(self, bag: Bag, now: float) -> None:
        self.state.bags[bag.id] = bag
        if bag.spec.aims:
            self.keep_apart(bag.id)
        dispatch(self.state, now)

    def cancel(self, bag_id: int) -> int:
        """Cancel a bag's unfinished tasks and end their attempts; returns how many tasks."""
        bag = self.state.bags.get(bag_id)
        if bag is None:
            return 0
        cancelled = bag.cancel()
        for task in cancelled:
            self.state.note(bag, task)
        for worker in self.state.workers.values():
            for key in worker.held:
                if key.bag == bag_id:
                    self.state.abort(worker, key)
        self.state.forget_if_over(bag)
        return len(cancelled)

    def retry(self, bag: Bag, now: float) -> int:
        """Put a bag's failed and cancelled tasks back with fresh retries; returns how many."""
        bag = self.state.bags.get(bag.id, bag)
        again = bag.retry()
        for task in again:
            self.state.note(bag, task)
        if again:
            self.add_bag(bag, now)
        return len(again)

    def demands(self, site: str) -> tuple[Demand, ...]:
        """What the planner of a site has to find processors for, by shape of task."""
        return demands_of(self.state, site)

    def groups(self) -> tuple[TaskGroup, ...]:
        """What has to be divided among the sites: the tasks by their shape and the sites they may run at."""
        return groups_of(self.state)

    def sharers(self, site: str, demand: Demand) -> dict[int, float]:
        """The bags whose waiting tasks make a demand, and how many each has."""
        return sharers_of(self.state, site, demand)

    def keep_apart(self, bag: int) -> None:
        """From now on a bag runs in pilots of its own only, since it pays for itself."""
        self.state.alone.add(bag)

    def own_pilot(self, pilot: int, bag: int) -> None:
        """A pilot serves this bag alone."""
        self.state.owners[pilot] = bag

    def donation_demands(self, site: str) -> tuple[BagDonationDemand, ...]:
        """What may be started on donated nodes of a site, by bag or by bags that share their pilots."""
        return donation_demands(self.state, site)

    def use_node(self, pilot: int, node: DonatedNode) -> None:
        """A pilot runs on a donated node, or what is known of that node has changed."""
        self.state.donated[pilot] = node

    def learn_hazard(self, site: str, hazard: Hazard) -> None:
        """How long the nodes of a site stay idle."""
        self.state.hazards[site] = hazard

    def forget_pilot(self, pilot: int) -> None:
        """It has ended, and all that it left behind was heard."""
        self.state.donated.pop(pilot, None)
        self.state.owners.pop(pilot, None)

    def meter(self, pilot: int, meter: Meter | None) -> None:
        """How a pilot that serves one bag is charged; None: it has ended."""
        if meter is None:
            self.state.meters.pop(pilot, None)
        elif pilot in self.state.owners:
            self.state.meters[pilot] = meter

    def starts(self, bag: int) -> list[float]:
        """When the tasks of a bag that run were started, as far as workers have said so."""
        first: dict[int, float] = {}
        for worker in self.state.workers.values():
            for key, held in worker.held.items():
                if key.bag == bag and held.started is not None:
                    first[key.task] = min(held.started, first.get(key.task, held.started))
        return list(first.values())

    def started(self, bag: int) -> int:
        """Tasks of a bag that run; a worker may hold others in reserve."""
        tasks = {
            key.task
            for worker in self.state.workers.values()
            for key, held in worker.held.items()
            if key.bag == bag and (held.started is not None or worker.awaited)
        }
        return len(tasks)

    def set_longest(self, site: str, longest: float) -> None:
        """The site leaves less time for a task than was thought."""
        self.state.set_longest(site, longest)

    @property
    def busy(self) -> bool:
        """Whether any task is unfinished."""
        return any(not bag.ended for bag in self.state.bags.values())

    def has_work_for(self, site: str) -> bool:
        """Whether an unfinished task may run at this site."""
        return any(not bag.ended and self.state.concerns(bag, site) for bag in self.state.bags.values())

    def has_waiting(self, site: str) -> bool:
        """Whether a task waits that may run at this site."""
        return any(bag.waiting and self.state.concerns(bag, site) for bag in self.state.bags.values())

    def has_work_in(self, pilot: int, site: str) -> bool:
        """Whether an unfinished task may run in a pilot."""
        bags = self.state.bags.values()
        return any(not bag.ended and self.state.serves_in(pilot, site, bag) for bag in bags)

    # --- workers -------------------------------------------------------------------------------

    def hello(self, id: str, hello: Hello, site: str, now: float) -> None:
        """A worker is there, new or known from before; its word on what it holds is the truth."""
        believed = self._take_over(id, hello, site, now)
        worker = self.state.workers[id]
        holding = set(hello.holding) | {result.key for result in hello.unacknowledged}
        for key in hello.holding:
            if key not in believed:
                self.state.revive(worker, key, now)
        self._mark_started(worker, hello.started, now)
        for key in believed - holding:
            give_up(self.state, worker, key, AttemptOutcome.RETURNED, now)
        self._settle_all(worker, hello.unacknowledged, now)

    def _take_over(self, id: str, hello: Hello, site: str, now: float) -> set[AttemptKey]:
        """Enter the worker, with the leases that it is believed to hold."""
        known = self.state.workers.get(id)
        worker = Worker(
            id,
            pilot=hello.pilot,
            site=site,
            node=hello.node,
            processors=hello.processors,
            memory=hello.memory,
            deadline=hello.deadline,
            seen=now,
        )
        worker.held = known.held if known else {}
        self.state.workers[id] = worker
        return set(worker.held)

    def report(self, id: str, report: Report, now: float) -> None:
        """Results, starts and free processors; a worker that nobody knows is asked to say Hello."""
        worker = self.state.workers.get(id)
        orders = self.state.orders.of(id)  # every report is answered
        if worker is None or worker.awaited:
            orders.say_hello = True
            return
        worker.seen = now
        self._mark_started(worker, report.started, now)
        self._settle_all(worker, report.results, now)
        worker.free_processors, worker.free_memory = report.free_processors, report.free_memory
        worker.queued = report.queued
        if report.load:
            orders.say_hello = self._misses_leases(worker, report, now)
        stop_unpaid_copies(self.state, now)
        feed(self.state, worker, now)

    def goodbye(self, id: str, why: Leaving, results: list[Result], now: float) -> Worker | None:
        """A worker leaves; what it still holds goes back into the queue. Returns it if it was known."""
        worker = self.state.workers.get(id)
        if worker is None:
            self.state.orders.of(id).acknowledged.extend(result.key for result in results)
            return None
        self._settle_all(worker, results, now, why)
        self._remove(worker, AttemptOutcome.RETURNED, now)
        dispatch(self.state, now)
        return worker

    def lost(self, id: str, outcome: AttemptOutcome, at: float, now: float) -> None:
        """A worker is gone without a word, at the time `at`; what it held is given up as `outcome`."""
        worker = self.state.workers.get(id)
        if worker is not None:
            self._remove(worker, outcome, at)
            dispatch(self.state, now)

    def left_behind(self, pilot: int, site: str, results: Iterable[Result], now: float) -> None:
        """Results that a worker wrote down before it left because nobody acknowledged them."""
        nobody = Worker(
            "", pilot=pilot, site=site, node="", processors=0, memory=0, deadline=float("inf"), seen=now
        )
        for result in results:
            holders = (worker for worker in self.of_pilot(pilot) if result.key in worker.held)
            settle(self.state, next(holders, nobody), result, now, Leaving.ALONE)
        dispatch(self.state, now)

    def silent(self, since: float) -> list[Worker]:
        """Workers that have not been heard of after `since`."""
        return [worker for worker in self.state.workers.values() if worker.seen < since]

    def of_pilot(self, pilot: int) -> list[Worker]:
        return [worker for worker in self.state.workers.values() if worker.pilot == pilot]

    def of_site(self, site: str) -> list[Worker]:
        return [worker for worker in self.state.workers.values() if worker.site == site]

    def tell_to_leave(self, worker: str, why: str) -> None:
        self.state.orders.of(worker).leave = why

    def send_home(self, site: str) -> None:
        """Workers of a site for which no task is left leave at once, rather than after their idle time."""
        for worker in self.of_site(site):
            if not self.has_work_in(worker.pilot, site):
                self.tell_to_leave(worker.id, ALL_ENDED)

    def _mark_started(self, worker: Worker, keys: list[AttemptKey], now: float) -> None:
        for key in keys:
            held = worker.held.get(key)
            if held is not None and held.started is None:
                held.started = now

    def _settle_all(
        self, worker: Worker, results: list[Result], now: float, why: Leaving | None = None
    ) -> None:
        for result in results:
            settle(self.state, worker, result, now, why)
            self.state.orders.of(worker.id).acknowledged.append(result.key)

    def _misses_leases(self, worker: Worker, report: Report, now: float) -> bool:
        """Whether a heartbeat names fewer leases than were sent long ago: a message was lost."""
        timeout = LEASE_TIMEOUT + _ROUND_TRIPS * 2 * self.state.sites[worker.site].latency
        old = sum(1 for held in worker.held.values() if now - held.leased > timeout)
        return old > len(report.load) + report.queued

    def _remove(self, worker: Worker, outcome: AttemptOutcome, at: float) -> None:
        for key, held in list(worker.held.items()):
            lost = outcome is AttemptOutcome.RETURNED and held.started is not None
            give_up(self.state, worker, key, AttemptOutcome.LOST if lost else outcome, at)
        del self.state.workers[worker.id]
