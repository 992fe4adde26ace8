"""The broker: workers pull the tasks of all bags (De Rose §4.3, Fig. 2). Pure.

Each call collects changes for the journal and orders for the workers. `drain` returns both; the daemon
writes the changes first, then sends the orders. Times are epoch seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain

from adaptor.bag_spec import BagSpec
from adaptor.crafting.situation import Demand, TaskGroup, TaskShape
from adaptor.donation.idleness import Hazard
from adaptor.model import AttemptOutcome, TaskState
from adaptor.protocol.messages import AttemptKey, Hello, Leaving, Orders, Report, Result
from adaptor.resources import OwnNeeds, TaskSize
from adaptor.runtimes.known import EarlierTasks
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.blocking import await_again, await_retried, follow_ends, look_at
from adaptor.scheduling.changes import AttemptSuspected, Changes, NeedsChanged
from adaptor.scheduling.demand import (
    BagDonationDemand,
    demands_of,
    donation_demands,
    groups_of,
    shapes_of,
    sharers_of,
)
from adaptor.scheduling.dependencies import Links
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.guards import (
    forgive,
    go_on,
    pause,
    recall_unstarted,
    resume,
    room_of,
    tell_time_limits,
    wait_until_begin,
)
from adaptor.scheduling.leasing import dispatch, feed, lacks_time, lacks_work
from adaptor.scheduling.losses import PilotEnd
from adaptor.scheduling.lost_workers import SILENT, explain_losses, remove
from adaptor.scheduling.settling import give_up, settle
from adaptor.scheduling.state import Meter, SchedulingState, SiteTerms
from adaptor.scheduling.tail_replication import stop_unpaid_copies
from adaptor.scheduling.workers import Worker

LEASE_TIMEOUT = 15.0  # seconds after which the broker asks about a lease that the worker does not report
_ROUND_TRIPS = 6  # round trips added to that timeout, since a lease in a slow message is not lost


ALL_ENDED = "all tasks have ended"
"""The reason in the order to leave, when no unfinished task may run in a worker's pilot."""
NO_WORK = "no task waits"
"""The reason in the order to leave, when the worker `lacks_work` and its pilot is narrow: it then ends."""
NO_TIME = "its pilot ends too soon for the tasks that wait"
"""The reason in the order to leave, when the worker `lacks_time`."""


class Broker:
    def __init__(self, sites: dict[str, SiteTerms]) -> None:
        self.state = SchedulingState(sites)

    def drain(self) -> tuple[Changes, dict[str, Orders]]:
        """The changes since the last call, and the orders by worker id."""
        changes, self.state.changes = self.state.changes, Changes()
        touched, self.state.touched = self.state.touched, {}
        changes.tallies = {bag.id: bag.tally() for bag in touched.values()}
        changes.at_rest = any(bag.ended or (bag.guard.paused and not bag.at_work) for bag in touched.values())
        orders, self.state.orders = self.state.orders, defaultdict(Orders)
        return changes, orders

    # --- bags ----------------------------------------------------------------------------------

    def add_bag(self, bag: Bag, now: float, *, new: bool = False) -> None:
        """Take a bag in. `new`: it may begin later, and nothing that it awaits has ended."""
        self.state.enter(bag)
        if new:
            wait_until_begin(self.state, bag, now)
        if bag.spec.aims:
            self.keep_apart(bag.id)
        if not new or bag.dependencies:
            look_at(self.state, bag, bag.blocked)
        dispatch(self.state, now)

    def append(
        self,
        bag_id: int,
        count: int,
        now: float,
        links: Mapping[int, Links] | None = None,
        needs: Mapping[int, OwnNeeds] | None = None,
        refused: Mapping[int, str] | None = None,
    ) -> None:
        """Add tasks to an open bag.

        Args:
            links: by task, the parents of those that have any.
            needs: by task, those that differ from what the bag says.
            refused: by task that nothing can run, why.

        Raises:
            ValueError: the needs of a task contradict each other; nothing is added.
        """
        bag = self.state.bags[bag_id]
        blocked = bag.append(count, links, needs)
        self.refuse(bag, refused or {})
        look_at(self.state, bag, blocked)
        dispatch(self.state, now)

    def advance(self, now: float) -> None:
        """Let go on what waited for tasks and bags that have ended since the last call, or for this time."""
        due = self.due(now)
        for bag in due:
            go_on(self.state, bag)
        if follow_ends(self.state) or due:
            dispatch(self.state, now)

    def due(self, now: float) -> list[Bag]:
        """The bags that have waited for their `begin`, which has come."""
        return [
            bag for bag in self.state.bags.values() if bag.guard.until is not None and bag.guard.until <= now
        ]

    def close(self, bag_id: int) -> bool:
        """Let a bag take no more tasks; False: it was closed already."""
        bag = self.state.bags.get(bag_id)
        if bag is None or not bag.open:
            return False
        bag.close()
        self.state.touched[bag.id] = bag
        self.state.forget_if_over(bag)
        return True

    def cancel(
        self,
        bag_id: int,
        tasks: Iterable[int] | None = None,
        *,
        unstarted: bool = False,
        enough: bool = False,
    ) -> int:
        """Cancel unfinished tasks of a bag and abort their attempts; returns the number of tasks.

        Args:
            tasks: None for all of them, and then the bag takes no more.
            unstarted: only those of `tasks` that have not started.
            enough: what they have done is all that is wanted of them: they are done.
        """
        bag = self.state.bags.get(bag_id)
        if bag is None:
            return 0
        if tasks is None:
            self.close(bag_id)
        elif unstarted:
            tasks = set(tasks) - self.started(bag_id).keys()
        cancelled = bag.cancel(tasks, enough=enough)
        for task in cancelled:
            self.state.note(bag, task)
        gone = set(cancelled)
        for worker in self.state.workers.values():
            for key in worker.held:
                if key.bag == bag_id and (tasks is None or key.task in gone):
                    self.state.abort(worker, key)
        if cancelled and not enough:
            self.state.changes.by_user[bag_id] = "cancelled"
        self.state.forget_if_over(bag)
        return len(cancelled)

    def refuse(self, bag: Bag, reasons: Mapping[int, str]) -> None:
        """End new tasks as failed, before those that wait for them are looked at: nothing can run them."""
        for task, why in reasons.items():
            bag.end(task, TaskState.FAILED)
            self.state.note(bag, task, error=why)

    def give_up(self, bag_id: int, why: str, size: TaskSize | None = None) -> int:
        """End the waiting tasks of a bag as failed; returns their number. Those that run go on.

        `size`: only tasks of exactly this size; None: all.
        """
        bag = self.state.bags.get(bag_id)
        if bag is None:
            return 0
        waiting = [task for task in chain(bag.waiting, bag.suspects) if size in (None, bag.sizes.of(task))]
        self.refuse(bag, dict.fromkeys(waiting, why))
        if size is not None:
            bag.lines.let_go_of(size)
        self.state.forget_if_over(bag)
        return len(waiting)

    def retry(
        self,
        bag: Bag,
        now: float,
        tasks: Iterable[int] | None = None,
        needs: OwnNeeds | None = None,
        spec: BagSpec | None = None,
    ) -> int:
        """Queue a bag's failed and cancelled tasks (None: all of them) again, as if they had not run; returns
        their number; none where a bag after which it runs has ended so that it cannot.

        Args:
            needs: what replaces theirs.
            spec: the options that the bag has from now on; None: as before.

        Raises ValueError: the needs contradict other sizes of a task; nothing is changed.
        """
        bag = self.state.bags.get(bag.id, bag)
        await_retried(self.state, bag)
        if bag.spoilers:
            return 0
        losses = bag.losses.by_task()
        again = bag.retry(tasks, needs)
        if again and needs is not None:
            self.state.changes.needs.append(NeedsChanged(bag.id, again, needs))
        for task in again:
            self.state.note(bag, task, again=True)
            self.state.changes.attempts += [
                AttemptSuspected(AttemptKey(bag.id, task, attempt), suspect=False)
                for attempt in losses.get(task, ())
            ]
        if again:
            forgive(self.state, bag)
            if spec is not None:
                self._take(bag, spec, now)
            self.state.changes.by_user[bag.id] = "retried"
            await_again(self.state, bag)
            self.add_bag(bag, now)
        return len(again)

    def pause(self, bag_id: int) -> bool:
        """Start no more tasks of a bag; those that run go on. Returns False: it is paused, or has ended."""
        bag = self.state.bags.get(bag_id)
        if bag is None or bag.ended or (bag.guard.paused and bag.guard.until is None):
            return False
        pause(self.state, bag, "its user has paused it")
        self.state.changes.by_user[bag_id] = "paused"
        return True

    def resume(self, bag_id: int, now: float) -> bool:
        """Let a paused bag go on, without its canary. Returns False: it is not paused, or has ended."""
        bag = self.state.bags.get(bag_id)
        if bag is None or bag.ended or not bag.guard.paused:
            return False
        resume(self.state, bag)
        self.state.changes.by_user[bag_id] = "resumed"
        dispatch(self.state, now)
        return True

    def change_options(self, bag_id: int, spec: BagSpec, now: float) -> bool:
        """Replace the options of an unfinished bag, its tasks' needs aside. Returns False: it has ended."""
        bag = self.state.bags.get(bag_id)
        if bag is None or bag.ended:
            return False
        self._take(bag, spec, now)
        self.state.changes.by_user[bag_id] = "options changed"
        dispatch(self.state, now)
        return True

    def _take(self, bag: Bag, spec: BagSpec, now: float) -> None:
        """Replace the options of a bag."""
        begins = spec.begin != bag.spec.begin
        if spec.max_running != bag.spec.max_running:  # tasks that wait in workers go by the old one
            for worker in self.state.workers.values():
                recall_unstarted(self.state, worker, bag)
        self.learn_kinds(bag, spec, bag.earlier)
        if begins:
            wait_until_begin(self.state, bag, now)
        if spec.aims:
            self.keep_apart(bag.id)

    def change_needs(self, bag_id: int, tasks: Iterable[int], needs: OwnNeeds, now: float) -> int:
        """Replace what those of these tasks need that have not ended, and return their number.

        Those that run go on with what they have.

        Raises ValueError: the needs contradict other sizes of a task; nothing is changed.
        """
        bag = self.state.bags.get(bag_id)
        changed = [] if bag is None else bag.change_needs(tasks, needs)
        if bag is not None and changed:
            for worker in self.state.workers.values():
                recall_unstarted(self.state, worker, bag)
            self.state.changes.needs.append(NeedsChanged(bag_id, changed, needs))
            self.state.touched[bag_id] = bag
            dispatch(self.state, now)
        return len(changed)

    def learn_kinds(self, bag: Bag, spec: BagSpec, earlier: Mapping[str, EarlierTasks]) -> None:
        """Set the kinds of a bag's tasks (in `spec`), and what is known of earlier bags of them, by site."""
        bag.spec = self.state.changes.specs[bag.id] = spec
        self.state.know_earlier(bag, earlier)

    def demands(self, site: str, now: float | None = None) -> tuple[Demand, ...]:
        """The tasks for which a site's planner needs processors, by shape of task (see `demands_of`)."""
        return demands_of(self.state, site, now)

    def shapes(self, site: str) -> set[TaskShape]:
        """The shapes of the tasks in `demands`."""
        return shapes_of(self.state, site)

    def groups(self) -> tuple[TaskGroup, ...]:
        """The tasks to divide among the sites, by shape and by the sites at which they may run."""
        return groups_of(self.state)

    def sharers(self, site: str, demand: Demand) -> dict[int, float]:
        """Number of waiting tasks in a demand, by bag."""
        return sharers_of(self.state, site, demand)

    def keep_apart(self, bag: int) -> None:
        """Run a bag only in its own pilots from now on, because it pays for itself."""
        self.state.alone.add(bag)

    def own_pilot(self, pilot: int, bag: int) -> None:
        """Let a pilot serve only this bag."""
        self.state.owners[pilot] = bag

    def made_for(self, pilot: int, task: TaskSize) -> None:
        """Say for tasks of which size a pilot is requested; those on several nodes have it for themselves."""
        self.state.made_for[pilot] = task

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
        self.state.made_for.pop(pilot, None)

    def meter(self, pilot: int, meter: Meter | None) -> None:
        """Set the charging of a pilot that serves one bag; None: the pilot has ended."""
        if meter is None:
            self.state.meters.pop(pilot, None)
        elif pilot in self.state.owners:
            known = self.state.meters.get(pilot)
            self.state.meters[pilot] = meter
            if known is None or known.unpaid != meter.unpaid:
                for worker in self.state.workers.of_pilot(pilot):
                    self.state.orders[worker.id].unpaid = meter.unpaid

    def started(self, bag: int) -> dict[int, float | None]:
        """The running tasks of a bag, without those that workers hold in reserve, and when they started.

        None: a worker that is awaited after a restart has not said so yet.
        """
        return {
            key.task: held.started
            for worker in self.state.workers.values()
            for key, held in worker.held.items()
            if key.bag == bag and (held.started is not None or (worker.awaited and not held.in_reserve))
        }

    @property
    def busy(self) -> bool:
        """True if any task is unfinished, except in bags that have paused by themselves and run nothing."""
        return any(
            not bag.ended and (bag.at_work or not bag.guard.itself) for bag in self.state.bags.values()
        )

    def has_work_for(self, site: str) -> bool:
        """True if a task runs, or may be started, that may run at this site."""
        return any(bag.at_work and self.state.concerns(bag, site) for bag in self.state.bags.values())

    def has_waiting(self, site: str) -> bool:
        """True if a waiting task may be started at this site."""
        bags = self.state.bags.values()
        return any(bag.startable and self.state.concerns(bag, site) for bag in bags)

    def has_work_in(self, pilot: int, site: str) -> bool:
        """True if a task runs, may be started, or may still be appended, that may run in a pilot."""
        bags = self.state.bags.values()
        return any(
            (bag.at_work or not (bag.ended or bag.guard.paused)) and self.state.serves_in(pilot, site, bag)
            for bag in bags
        )

    # --- workers -------------------------------------------------------------------------------

    def hello(self, id: str, hello: Hello, site: str, now: float) -> None:
        """Process the Hello of a new or known worker: its list of held attempts replaces ours."""
        known = self.state.workers.get(id)
        worker = Worker(
            id,
            pilot=hello.pilot,
            site=site,
            node=hello.node,
            processors=hello.processors,
            memory=hello.memory,
            gpus=hello.gpus,
            gpu_type=hello.gpu_type,
            deadline=hello.deadline,
            seen=now,
        )
        if known is not None:
            worker.held = known.held
        self.state.workers[id], believed = worker, set(worker.held)
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
        if hello.pilot in self.state.meters:
            self.state.orders[id].unpaid = self.state.meters[hello.pilot].unpaid

    def report(self, id: str, report: Report, now: float) -> None:
        """Process results, starts and free processors; ask an unknown worker to say Hello."""
        worker = self.state.workers.get(id)
        orders = self.state.orders[id]  # every report is answered
        if worker is None or worker.awaited:
            orders.say_hello = True
            return
        worker.seen = now
        self._mark_started(worker, report.started, now)
        self._settle_all(worker, report.results, now)
        worker.report(report)
        worker.queued = report.queued
        if report.load:
            # True if a heartbeat names fewer leases than we sent before the timeout: a message was lost.
            timeout = LEASE_TIMEOUT + _ROUND_TRIPS * 2 * self.state.sites[worker.site].latency
            old = sum(1 for held in worker.held.values() if now - held.leased > timeout)
            orders.say_hello = old > len(report.load) + report.queued
            orders.abort += [key for key, _ in report.load if _is_kept_in_vain(worker, key, orders.abort)]
        stop_unpaid_copies(self.state, now)
        tell_time_limits(self.state, worker)
        feed(self.state, worker, now)
        if report.results and self._leaves_room(report.results):
            dispatch(self.state, now)

    def _leaves_room(self, results: Iterable[Result]) -> bool:
        """Whether tasks wait that only `max-running`, or the first tasks of the bag, kept from other workers,
        which need not call first."""
        bags = (self.state.bags.get(bag) for bag in {result.key.bag for result in results})
        return any(
            bag is not None
            and (bag.max_running is not None or bag.spec.first_tasks)
            and bag.startable
            and room_of(self.state, bag)
            for bag in bags
        )

    def goodbye(self, id: str, why: Leaving, results: list[Result], now: float) -> Worker | None:
        """Process a Goodbye: queue the worker's tasks again. Returns the worker; None: unknown."""
        orders = self.state.orders[id]  # every goodbye is answered: the worker waits for that
        worker = self.state.workers.get(id)
        if worker is None:
            orders.acknowledged.extend(result.key for result in results)
            return None
        self._settle_all(worker, results, now, why)
        # Remove a worker that leaves; what it did not report was lost if it ran, else returned.
        for key in reversed(list(worker.held)):
            ran = worker.held[key].started is not None
            outcome = AttemptOutcome.LOST if ran else AttemptOutcome.RETURNED
            give_up(self.state, worker, key, outcome, now)
        del self.state.workers[worker.id]
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

    def left_behind(
        self, pilot: int, site: str, results: Iterable[Result], now: float, *, time_up: bool = False
    ) -> None:
        """Process unacknowledged results that a worker wrote to a file before it left.

        `time_up`: whether it left by itself: it ends tasks only where its time, or the paid time, is up.
        """
        why = Leaving.TIME_UP if time_up else Leaving.ALONE
        nobody = Worker(
            "", pilot=pilot, site=site, node="", processors=0, memory=0, deadline=float("inf"), seen=now
        )
        for result in results:
            holders = (worker for worker in self.of_pilot(pilot) if result.key in worker.held)
            settle(self.state, next(holders, nobody), result, now, why)
        dispatch(self.state, now)

    def silent(self, since: float) -> list[Worker]:
        """Workers without a message after `since`."""
        return [worker for worker in self.state.workers.values() if worker.seen < since]

    def of_pilot(self, pilot: int) -> list[Worker]:
        return self.state.workers.of_pilot(pilot)

    def tell_to_leave(self, worker: str, why: str) -> None:
        self.state.orders[worker].leave = why

    def send_home(self, site: str) -> None:
        """Order workers of a site without tasks to leave at once, instead of after their idle time."""
        for worker in self.state.workers.values():
            if worker.site == site:
                self.send_home_if_useless(worker.id)

    def send_home_if_useless(self, id: str) -> None:
        """Order a worker to leave if no unfinished task may run in its pilot."""
        worker = self.state.workers[id]
        if not self.has_work_in(worker.pilot, worker.site):
            self.tell_to_leave(id, ALL_ENDED)

    def lacks_time(self, id: str, now: float) -> bool:
        """True if a worker holds nothing, and its pilot ends too soon for every task that waits."""
        worker = self.state.workers.get(id)
        return worker is not None and lacks_time(self.state, worker, now)

    def lacks_work(self, id: str) -> bool:
        """True if a worker holds nothing, and no task waits, or is expected, that may run in its pilot."""
        worker = self.state.workers.get(id)
        return worker is not None and lacks_work(self.state, worker)

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
            self.state.orders[worker.id].acknowledged.append(result.key)


def _is_kept_in_vain(worker: Worker, key: AttemptKey, told: list[AttemptKey]) -> bool:
    """Whether a node is kept for a task on several that has ended: the order that said so was lost."""
    held = worker.held.get(key)
    return held is not None and held.takes_part and held.abort_sent and key not in told
