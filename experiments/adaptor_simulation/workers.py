"""Workers on a virtual clock that drive the scheduling core: the bags of a simulation are the `Broker`'s.

The workers say what those of a daemon say (Hello, Report, Goodbye) and obey what the broker orders; messages
take each site's `latency`. Several sites, bags, processors and memory per task, replicas, retries and donated
nodes are the broker's: the driver of the simulation calls its methods as the daemon does, then `advance`.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial

import msgspec

from adaptor.model import AttemptOutcome, TaskState
from adaptor.protocol.messages import AttemptKey, BagContext, Goodbye, Hello, Leaving, Orders, Report, Result
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.changes import AttemptEnd, AttemptStart, Changes
from adaptor_simulation.worker import Attempt, Behaviour, PilotPlace, SimulatedWorker, Started


class TaskEnded(msgspec.Struct, frozen=True):
    """A task is done, has failed or was cancelled."""

    bag: int
    task: int
    state: TaskState
    at: float
    """Seconds of the clock."""
    error: str | None = None
    """Why it failed, where its last attempt does not say it."""


class WorkerLeft(msgspec.Struct, frozen=True):
    """A worker has said Goodbye; its pilot ends when its last worker leaves."""

    pilot: int
    worker: str
    why: Leaving
    at: float


Event = AttemptStart | AttemptEnd | TaskEnded | WorkerLeft

_Said = Hello | Report | Goodbye

# What happens in the same second happens in this order.
_TASK_ENDS, _MESSAGE, _TIME_UP, _LATE, _BEAT, _IDLE = range(6)


class SimulatedWorkers:
    """The workers of all pilots of a simulation.

    In each second tasks end first, by worker and by slot, and each end is reported at once; then workers
    whose time is up end what runs; then workers with free processors report again (where messages take no
    time), so that they get what the second has freed; those without work leave after their idle time.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        idle_timeout: Mapping[str, float],
        heartbeat: float = math.inf,
        narrow: Collection[str] = (),
    ) -> None:
        """`idle_timeout` is by site: seconds after which a worker without work leaves. `heartbeat`: seconds
        between two reports of a worker in any case, as replicas at the end of a bag are considered then.
        `narrow`: sites at which a worker leaves as soon as no task waits for it."""
        self.broker = broker
        self._idle_timeout, self._heartbeat, self._narrow = idle_timeout, heartbeat, narrow
        self._workers: dict[str, SimulatedWorker] = {}
        self._behaviours: dict[int, Behaviour] = {}
        self._contexts: dict[int, BagContext] = {}
        self._calendar: list[tuple[float, int, int, int, int, Callable[[float], None]]] = []
        self._mail: deque[Callable[[float], None]] = deque()
        self._events: list[Event] = []
        self._touched: dict[str, SimulatedWorker] = {}  # those that may have become idle in this second
        self._count = 0
        self._changed = False

    def add_bag(self, bag: Bag, behaviour: Behaviour, now: float) -> None:
        """A bag comes; `behaviour` says what each attempt of its tasks does."""
        spec = bag.spec
        self._behaviours[bag.id] = behaviour
        self._contexts[bag.id] = BagContext(bag.id, spec.cwd, spec.output, {}, bag.task)
        self.broker.add_bag(bag, now)
        self._changed = True
        self._answer(now)
        self._deliver(now)

    def start(self, pilot: PilotPlace, now: float) -> str:
        """A worker starts in a pilot; several may start in the same one. Returns its id."""
        number = self._number()
        last = self.broker.state.sites[pilot.site].last
        worker = SimulatedWorker(f"{pilot.pilot}-{pilot.node}-{number}", number, pilot, last)
        self._workers[worker.id] = worker
        self._leave_in_time(worker, now)
        self._say(worker, worker.hello(), now)
        self._say(worker, worker.report([]), now)
        self._beat(worker, now)
        self._deliver(now)
        return worker.id

    def end_pilot(self, pilot: int, now: float) -> None:
        """The scheduler ends a pilot: its workers get a signal, end what runs and say Goodbye."""
        for worker in self._of(pilot):
            self._leave(worker, Leaving.SIGNAL, now)
        self._deliver(now)

    def lose_pilot(self, pilot: int, outcome: AttemptOutcome, now: float) -> None:
        """The workers of a pilot are gone without a message; the broker learns how the pilot ended."""
        for worker in self._of(pilot):
            del self._workers[worker.id]
            self.broker.lost(worker.id, outcome, now, now)
        self._answer(now)
        self._deliver(now)

    def next_event(self) -> float:
        """Time of the next event; `math.inf`: never."""
        return self._calendar[0][0] if self._calendar else math.inf

    def advance(self, now: float) -> list[Event]:
        """Let all happen up to and including `now`; returns what has happened since the last call."""
        while self._calendar and self._calendar[0][0] <= now:
            at = self._calendar[0][0]
            while self._calendar and self._calendar[0][:2] < (at, _IDLE):
                heapq.heappop(self._calendar)[-1](at)
                self._deliver(at)
            self._finish_second(at)
        self._answer(now)
        self._finish_second(now)
        events, self._events = self._events, []
        return events

    # --- what happens to a worker --------------------------------------------------------------

    def _finish_second(self, now: float) -> None:
        """Workers with something to tell, or with room while something has changed, report."""
        while True:
            changed, self._changed = self._changed, False
            self._deliver(now)
            for worker in list(self._workers.values()):
                if worker.has_started or (changed and worker.free and not self._latency(worker)):
                    self._say(worker, worker.report([]), now)
                    self._deliver(now)
            if not self._changed:
                break
        touched, self._touched = self._touched, {}
        for worker in touched.values():
            self._note_idle(worker, now)
        while self._calendar and self._calendar[0][:2] == (now, _IDLE):
            heapq.heappop(self._calendar)[-1](now)
            self._deliver(now)

    def _task_ends(self, worker: SimulatedWorker, started: Started, now: float) -> None:
        if worker.running.get(started.key) is started:
            result = worker.finish(started.key)
            self._start_in(worker, now)
            self._tell(worker, [result], now)

    def _start_in(self, worker: SimulatedWorker, now: float) -> None:
        for started in worker.start(now, partial(self._behave, worker)):
            self._plan(
                started.ends, _TASK_ENDS, worker, partial(self._task_ends, worker, started), started.place
            )
        if not worker.idle:
            worker.idle_since = None
        late = worker.late_at()
        if late < math.inf:
            self._plan(late + 1.0, _LATE, worker, partial(self._return_late, worker))

    def _return_late(self, worker: SimulatedWorker, now: float) -> None:
        if returned := worker.return_late(now):
            self._tell(worker, returned, now)

    def _behave(self, worker: SimulatedWorker, key: AttemptKey) -> Attempt:
        return self._behaviours[key.bag](key, worker.pilot.site)

    def _beat(self, worker: SimulatedWorker, now: float) -> None:
        if self._heartbeat < math.inf:
            self._plan(now + self._heartbeat, _BEAT, worker, partial(self._tell_again, worker))

    def _tell_again(self, worker: SimulatedWorker, now: float) -> None:
        if worker.id in self._workers:
            self._say(worker, worker.report([]), now)
            self._beat(worker, now)

    def _note_idle(self, worker: SimulatedWorker, now: float) -> None:
        """A worker without work leaves when its idle time is over, unless it gets some; or at once if it
        lacks time for the tasks that wait, or if none waits and its pilot is narrow."""
        if worker.id not in self._workers or not worker.welcomed:
            return
        if not worker.idle or worker.idle_since not in (None, now):
            return
        # Tasks that come back later in the second in which it became idle may be too long for it.
        site = worker.pilot.site
        useless = self.broker.lacks_time(worker.id, now)
        useless = useless or (site in self._narrow and self.broker.lacks_work(worker.id))
        if useless or worker.idle_since is None:
            worker.idle_since = now
            over = now if useless else now + self._idle_timeout[site]
            self._plan(over, _IDLE, worker, partial(self._leave_idle, worker, now))

    def _leave_idle(self, worker: SimulatedWorker, since: float, now: float) -> None:
        if worker.idle and worker.idle_since == since:
            self._leave(worker, Leaving.IDLE, now)

    def _leave(self, worker: SimulatedWorker, why: Leaving, now: float) -> None:
        if self._workers.pop(worker.id, None) is not None:
            self._events.append(WorkerLeft(worker.pilot.pilot, worker.id, why, now))
            self._say(worker, worker.leave(why, now), now)

    def _leave_in_time(self, worker: SimulatedWorker, now: float) -> None:
        """Plan that it leaves when its time is up, which may come sooner or later by then."""
        self._plan(max(now, worker.leave_at), _TIME_UP, worker, partial(self._time_up, worker))

    def _time_up(self, worker: SimulatedWorker, now: float) -> None:
        if now >= worker.leave_at:
            self._leave(worker, Leaving.TIME_UP, now)

    def _of(self, pilot: int) -> list[SimulatedWorker]:
        return [worker for worker in self._workers.values() if worker.pilot.pilot == pilot]

    # --- messages ------------------------------------------------------------------------------

    def _tell(self, worker: SimulatedWorker, results: list[Result], now: float) -> None:
        self._say(worker, worker.report(results), now)

    def _say(self, worker: SimulatedWorker, message: _Said, now: float) -> None:
        self._touched[worker.id] = worker
        self._send(worker, partial(self._hear, worker, message), now)

    def _send(self, worker: SimulatedWorker, deliver: Callable[[float], None], now: float) -> None:
        if latency := self._latency(worker):
            self._plan(now + latency, _MESSAGE, worker, deliver)
        else:
            self._mail.append(deliver)

    def _latency(self, worker: SimulatedWorker) -> float:
        return self.broker.state.sites[worker.pilot.site].latency

    def _deliver(self, now: float) -> None:
        while self._mail:
            self._mail.popleft()(now)

    def _hear(self, worker: SimulatedWorker, message: _Said, now: float) -> None:
        """The broker hears a worker, as the daemon's endpoint has it hear them."""
        match message:
            case Hello():
                self.broker.hello(worker.id, message, worker.pilot.site, now)
                self.broker.send_home_if_useless(worker.id)
                self._send(worker, partial(self._welcome, worker), now)
            case Report():
                self.broker.report(worker.id, message, now)
            case Goodbye():
                self.broker.goodbye(worker.id, message.why, message.results, now)
        self._answer(now)

    def _welcome(self, worker: SimulatedWorker, _now: float) -> None:
        """The daemon answers a Hello; the idle time counts from then on."""
        worker.welcomed = True
        self._touched[worker.id] = worker

    def _answer(self, now: float) -> None:
        """Pass on what the broker orders, and note what it has changed."""
        changes, drafts = self.broker.drain()
        self._note(changes, now)
        if changes.at_rest:
            for site in self.broker.state.sites:
                self.broker.send_home(site)
            drafts = _merged(drafts, self.broker.drain()[1])
        for id, draft in drafts.items():
            worker = self._workers.get(id)
            orders = draft.abort or draft.give_back or draft.leave or draft.say_hello
            orders = orders or draft.unpaid is not None
            if worker is not None and (draft.leases or orders):
                self._send(worker, partial(self._obey, worker, draft), now)

    def _obey(self, worker: SimulatedWorker, draft: Orders, now: float) -> None:
        if worker.id not in self._workers:
            return
        if draft.unpaid is not None:
            worker.pay_until(draft.unpaid)
            self._leave_in_time(worker, now)
        for lease in draft.leases:
            worker.accept(lease, self._contexts[lease.key.bag])
        results = [result for key in draft.abort for result in worker.abort(key, now)]
        results += [result for key in draft.give_back for result in worker.give_back(key)]
        if draft.leave:
            self._leave(worker, Leaving.TOLD, now)
            return
        self._start_in(worker, now)
        results += worker.return_late(now)
        if draft.say_hello:
            self._say(worker, worker.hello(), now)
        if results or draft.say_hello:
            self._tell(worker, results, now)

    def _note(self, changes: Changes, now: float) -> None:
        """Keep what happened for the driver of the simulation."""
        self._changed |= bool(changes.tasks)
        ends: dict[AttemptKey, float] = {}
        for attempt in changes.attempts:
            if isinstance(attempt, AttemptStart | AttemptEnd):
                self._events.append(attempt)
            if isinstance(attempt, AttemptEnd):
                ends[attempt.key] = attempt.at
        for change in changes.tasks:
            for task in change.tasks if change.state.ended else ():
                at = ends.get(AttemptKey(change.bag, task, change.result or 0), now)
                self._events.append(TaskEnded(change.bag, task, change.state, at, change.error))

    def _plan(
        self, at: float, what: int, worker: SimulatedWorker, do: Callable[[float], None], place: int = 0
    ) -> None:
        heapq.heappush(self._calendar, (at, what, worker.number, place, self._number(), do))

    def _number(self) -> int:
        self._count += 1
        return self._count


def _merged(drafts: dict[str, Orders], more: Mapping[str, Orders]) -> dict[str, Orders]:
    """The leave of the second order is added to the first; nothing else is in it."""
    for id, draft in more.items():
        drafts.setdefault(id, Orders()).leave = draft.leave
    return drafts
