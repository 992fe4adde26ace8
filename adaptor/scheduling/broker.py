"""The broker: workers pull the tasks of all bags (De Rose §4.3, Fig. 2). Pure.

Each call collects changes for the journal and orders for the workers. `drain` returns both; the daemon
writes the changes first, then sends the orders. Times are epoch seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.crafting.situation import Demand, TaskGroup, TaskShape
from adaptor.donation.idleness import Hazard
from adaptor.model import AttemptOutcome, TaskState
from adaptor.protocol.messages import AttemptKey, Hello, Leaving, Report, Result
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.changes import AttemptSuspected, Changes
from adaptor.scheduling.demand import (
    BagDonationDemand,
    demands_of,
    donation_demands,
    groups_of,
    shapes_of,
    sharers_of,
)
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.leasing import dispatch, feed
from adaptor.scheduling.losses import PilotEnd
from adaptor.scheduling.lost_workers import SILENT, explain_losses, remove
from adaptor.scheduling.orders import DraftOrders
from adaptor.scheduling.settling import give_up, settle
from adaptor.scheduling.state import Meter, SchedulingState, SiteTerms
from adaptor.scheduling.tail_replication import stop_unpaid_copies
from adaptor.scheduling.workers import Worker

LEASE_TIMEOUT = 15.0
"""Seconds after which the broker asks about a lease that the worker does not report."""
_ROUND_TRIPS = 6
"""Round trips added to that timeout, since a lease in a slow message is not lost."""


ALL_ENDED = "all tasks have ended"
"""The reason in the order to leave, when no unfinished task may run in a worker's pilot."""


class Broker:
    def __init__(self, sites: dict[str, SiteTerms]) -> None:
        self.state = SchedulingState(sites)

    def drain(self) -> tuple[Changes, dict[str, DraftOrders]]:
        """The changes since the last call, and the orders by worker id."""
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
        """Cancel a bag's unfinished tasks and abort their attempts; returns the number of tasks."""
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
        if cancelled:
            self.state.changes.by_user[bag_id] = "cancelled"
        self.state.forget_if_over(bag)
        return len(cancelled)

    def give_up(self, bag_id: int, why: str) -> int:
        """End the waiting tasks of a bag as failed; returns their number. Those that run go on."""
        bag = self.state.bags.get(bag_id)
        if bag is None:
            return 0
        waiting = [*bag.waiting, *bag.suspects]
        for task in waiting:
            bag.end(task, TaskState.FAILED)
            self.state.note(bag, task, error=why)
        self.state.forget_if_over(bag)
        return len(waiting)

    def retry(self, bag: Bag, now: float) -> int:
        """Queue a bag's failed and cancelled tasks again, as if they had not run; returns their number."""
        bag = self.state.bags.get(bag.id, bag)
        losses = {task: bag.losses.of(task) for task in range(bag.total) if task in bag.losses}
        again = bag.retry()
        for task in again:
            self.state.note(bag, task)
            self.state.changes.attempts += [
                AttemptSuspected(AttemptKey(bag.id, task, attempt), suspect=False)
                for attempt in losses.get(task, ())
            ]
        if again:
            self.state.changes.by_user[bag.id] = "retried"
            self.add_bag(bag, now)
        return len(again)

    def demands(self, site: str) -> tuple[Demand, ...]:
        """The tasks for which a site's planner needs processors, by shape of task."""
        return demands_of(self.state, site)

    def shapes(self, site: str) -> set[TaskShape]:
        """The shapes of the tasks in `demands`."""
        return shapes_of(self.state, site)

    def groups(self) -> tuple[TaskGroup, ...]:
        """The tasks to divide among the sites, by shape and by the sites at which they may run."""
        return groups_of(self.state)

    def sharers(self, site: str, demand: Demand) -> dict[int, float]:
        """By bag: the number of its waiting tasks in a demand."""
        return sharers_of(self.state, site, demand)

    def keep_apart(self, bag: int) -> None:
        """Run a bag only in its own pilots from now on, because it pays for itself."""
        self.state.alone.add(bag)

    def own_pilot(self, pilot: int, bag: int) -> None:
        """Let a pilot serve only this bag."""
        self.state.owners[pilot] = bag

    def donation_demands(self, site: str) -> tuple[BagDonationDemand, ...]:
        """The waiting tasks that may start on donated nodes of a site, by bag."""
        return donation_demands(self.state, site)

    def use_node(self, pilot: int, node: DonatedNode) -> None:
        """Set or update the donated node on which a pilot runs."""
        self.state.donated[pilot] = node

    def expect_requests(self, site: str, starts: dict[int | None, float]) -> None:
        """Set when the next request of a site is predicted to start, by the only bag that it is for."""
        self.state.starts[site] = starts

    def learn_hazard(self, site: str, hazard: Hazard) -> None:
        """Set the hazard of a site: for how long its nodes stay idle."""
        self.state.hazards[site] = hazard

    def forget_pilot(self, pilot: int) -> None:
        """Forget a pilot that has ended and whose results have all arrived."""
        self.state.lost.pop(pilot, None)
        self.state.donated.pop(pilot, None)
        self.state.owners.pop(pilot, None)

    def meter(self, pilot: int, meter: Meter | None) -> None:
        """Set the charging of a pilot that serves one bag; None: the pilot has ended."""
        if meter is None:
            self.state.meters.pop(pilot, None)
        elif pilot in self.state.owners:
            self.state.meters[pilot] = meter

    def started(self, bag: int) -> int:
        """The number of running tasks of a bag, without those that workers hold in reserve."""
        tasks = {
            key.task
            for worker in self.state.workers.values()
            for key, held in worker.held.items()
            if key.bag == bag and (held.started is not None or worker.awaited)
        }
        return len(tasks)

    def set_longest(self, site: str, longest: float) -> None:
        """Correct the longest task of a site, seconds."""
        self.state.set_longest(site, longest)

    @property
    def busy(self) -> bool:
        """True if any task is unfinished."""
        return any(not bag.ended for bag in self.state.bags.values())

    def has_work_for(self, site: str) -> bool:
        """True if an unfinished task may run at this site."""
        return any(not bag.ended and self.state.concerns(bag, site) for bag in self.state.bags.values())

    def has_waiting(self, site: str) -> bool:
        """True if a waiting task may run at this site."""
        bags = self.state.bags.values()
        return any(bag.count(TaskState.WAITING) and self.state.concerns(bag, site) for bag in bags)

    def has_work_in(self, pilot: int, site: str) -> bool:
        """True if an unfinished task may run in a pilot."""
        bags = self.state.bags.values()
        return any(not bag.ended and self.state.serves_in(pilot, site, bag) for bag in bags)

    # --- workers -------------------------------------------------------------------------------

    def hello(self, id: str, hello: Hello, site: str, now: float) -> None:
        """Process the Hello of a new or known worker: its list of held attempts replaces ours."""
        believed = self._take_over(id, hello, site, now)
        worker = self.state.workers[id]
        holding = set(hello.holding) | {result.key for result in hello.unacknowledged}
        for key in hello.holding:
            if key not in believed:
                self.state.revive(worker, key, now)
        for key, held in worker.held.items():  # by now it says itself what runs
            held.at_once = held.at_once and key not in holding
        self._mark_started(worker, hello.started, now)
        for key in believed - holding:
            give_up(self.state, worker, key, AttemptOutcome.RETURNED, now)
        self._settle_all(worker, hello.unacknowledged, now)

    def _take_over(self, id: str, hello: Hello, site: str, now: float) -> set[AttemptKey]:
        """Enter the worker with the leases known so far; returns those."""
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
        """Process results, starts and free processors; ask an unknown worker to say Hello."""
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
        """Process a Goodbye: queue the worker's tasks again. Returns the worker; None: unknown."""
        worker = self.state.workers.get(id)
        if worker is None:
            self.state.orders.of(id).acknowledged.extend(result.key for result in results)
            return None
        self._settle_all(worker, results, now, why)
        self._return_all(worker, now)
        dispatch(self.state, now)
        return worker

    def lost(self, id: str, outcome: AttemptOutcome, at: float, now: float, how: str = SILENT) -> None:
        """Remove a worker that was lost at time `at`; its attempts end as `outcome`.

        If that is LOST, its running tasks are suspected to have ended it. `how`: what is known of its end;
        empty: nothing, as its site is cut off.
        """
        worker = self.state.workers.get(id)
        if worker is not None:
            remove(self.state, worker, outcome, at, how)
            dispatch(self.state, now)

    def explain_losses(self, end: PilotEnd, now: float) -> None:
        """Take in how a pilot ended, after its workers were removed: what that says of its lost attempts."""
        if self.state.lost.get(end.pilot):
            explain_losses(self.state, end)
            dispatch(self.state, now)

    def left_behind(self, pilot: int, site: str, results: Iterable[Result], now: float) -> None:
        """Process unacknowledged results that a worker wrote to a file before it left."""
        nobody = Worker(
            "", pilot=pilot, site=site, node="", processors=0, memory=0, deadline=float("inf"), seen=now
        )
        for result in results:
            holders = (worker for worker in self.of_pilot(pilot) if result.key in worker.held)
            settle(self.state, next(holders, nobody), result, now, Leaving.ALONE)
        dispatch(self.state, now)

    def silent(self, since: float) -> list[Worker]:
        """Workers without a message after `since`."""
        return [worker for worker in self.state.workers.values() if worker.seen < since]

    def of_pilot(self, pilot: int) -> list[Worker]:
        return [worker for worker in self.state.workers.values() if worker.pilot == pilot]

    def of_site(self, site: str) -> list[Worker]:
        return [worker for worker in self.state.workers.values() if worker.site == site]

    def tell_to_leave(self, worker: str, why: str) -> None:
        self.state.orders.of(worker).leave = why

    def send_home(self, site: str) -> None:
        """Order workers of a site without tasks to leave at once, instead of after their idle time."""
        for worker in self.of_site(site):
            self.send_home_if_useless(worker.id)

    def send_home_if_useless(self, id: str) -> None:
        """Order a worker to leave if no unfinished task may run in its pilot."""
        worker = self.state.workers[id]
        if not self.has_work_in(worker.pilot, worker.site):
            self.tell_to_leave(id, ALL_ENDED)

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
        """True if a heartbeat names fewer leases than we sent before the timeout: a message was lost."""
        timeout = LEASE_TIMEOUT + _ROUND_TRIPS * 2 * self.state.sites[worker.site].latency
        old = sum(1 for held in worker.held.values() if now - held.leased > timeout)
        return old > len(report.load) + report.queued

    def _return_all(self, worker: Worker, now: float) -> None:
        """Remove a worker that leaves; what it did not report was lost if it ran, else returned."""
        for key in reversed(list(worker.held)):
            ran = worker.held[key].started is not None
            outcome = AttemptOutcome.LOST if ran else AttemptOutcome.RETURNED
            give_up(self.state, worker, key, outcome, now)
        del self.state.workers[worker.id]
