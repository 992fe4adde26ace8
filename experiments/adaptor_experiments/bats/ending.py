"""The tail phase: the last tasks, with copies of them on paid idle machines, and what each way expects."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

from adaptor.budget.provisioning.tail_phase import (
    DAEMON,
    Attempts,
    Expectation,
    IdleProcessor,
    LateByItsNode,
    Rule,
    RunningTask,
    must_stop,
    replicas,
    worthwhile_copies,
)
from adaptor.runtimes.survival import Survival
from adaptor_experiments.bats.design import MIGRATING, SITES, Way
from adaptor_experiments.bats.sampling import IDLE, Machine
from adaptor_experiments.bats.throughput import Ending


class Perfect:
    """By the real runtimes: the theoretical optimum of the slides."""

    def __init__(self, runtimes: Sequence[Sequence[float]]) -> None:
        """By site, then by task."""
        self._times = {site.name: times for site, times in zip(SITES, runtimes, strict=True)}

    @property
    def sites(self) -> set[str]:
        return set(self._times)

    def of(self, task: int, attempts: Attempts) -> RunningTask:
        return RunningTask(
            task=task,
            left=min(self._times[site][task] - ran for site, ran in attempts),
            whole={site: times[task] for site, times in self._times.items()},
        )


class LongEverywhere:
    """The slides' expectation: a late task is long, and would be as long elsewhere."""

    def __init__(self, times: Survival, slower: Mapping[str, float]) -> None:
        """`times` in seconds of one site, `slower` by site: its seconds for one of those."""
        self._times, self._slower = times, slower

    @property
    def sites(self) -> set[str]:
        return set(self._slower)

    def of(self, task: int, attempts: Attempts) -> RunningTask:
        return self._taking(self._times.late, task, attempts)

    def on_average(self, task: int, attempts: Attempts) -> RunningTask:
        """Not in a bad case: where an attempt is to be given up for another."""
        return self._taking(self._times.whole, task, attempts)

    def _taking(self, known: Callable[[float], float], task: int, attempts: Attempts) -> RunningTask:
        seconds = known(max(ran / self._slower[site] for site, ran in attempts))
        return RunningTask(
            task=task,
            left=min(seconds * self._slower[site] - ran for site, ran in attempts),
            whole={site: seconds * slower for site, slower in self._slower.items()},
        )


def _by_the_daemon(ending: Ending) -> LateByItsNode:
    known = {site: sample for site, sample in ending.experiences.items() if len(sample)}
    most = max(known.values(), key=len)
    return LateByItsNode({site.name: Survival(known.get(site.name, most)) for site in SITES}, known)


class Result(msgspec.Struct, frozen=True):
    seconds: float
    """Until the last task has ended."""
    spent: float
    """Credits."""
    replicas: int
    """Number of replicas that were started."""
    won: int
    """Replicas that ended before any other attempt of their task."""
    migrations: int


class TailPhase:
    """From the same state for every way, which is left as it is."""

    def __init__(
        self, ending: Ending, runtimes: Sequence[Sequence[float]], way: Way, draw: random.Random
    ) -> None:
        self._now = ending.now
        self._fleet = ending.fleet.copy()
        self._waiting = deque(ending.waiting)
        self._runtimes, self._way, self._draw = runtimes, way, draw
        first = ending.learned[SITES[0].name].mean
        slower = {site.name: ending.learned[site.name].mean / first for site in SITES}
        self._slides = LongEverywhere(Survival(ending.experience), slower)
        # As the slides have it: idle paid time is given to any copy, which may be lucky.
        self._rule = DAEMON if way == "daemon" else Rule(name=way, exact=way == "perfect", copies=None)
        self._expectation: Expectation = self._slides
        if way in ("perfect", "daemon"):
            self._expectation = Perfect(runtimes) if way == "perfect" else _by_the_daemon(ending)
        self._replicas = self._won = self._migrations = 0

    def run(self) -> Result:
        self._decide()
        while self._attempts():
            self._now = self._fleet.next_event()
            self._finish()
            gone = []
            for machine in self._fleet.machines:
                if machine.paid_until > self._now:
                    continue
                if (machine.task == IDLE and not self._waiting) or self._is_unpaid_copy(machine):
                    gone.append(machine)
                else:
                    self._fleet.renew(machine)
            if gone:
                self._fleet.leave(gone)
            self._decide()
        return Result(self._now, self._fleet.spent, self._replicas, self._won, self._migrations)

    def _decide(self) -> None:
        for machine in self._fleet.idle():
            self._take(machine)
        if not self._waiting and self._way != "none":
            self._replicate()

    def _attempts(self) -> dict[int, list[Machine]]:
        """Machines by the task that runs on them."""
        found: dict[int, list[Machine]] = {}
        for machine in self._fleet.machines:
            if machine.task != IDLE:
                found.setdefault(machine.task, []).append(machine)
        return found

    def _finish(self) -> None:
        """The first attempt that ends counts; the others of its task are stopped."""
        ended = [each for each in self._fleet.machines if each.task != IDLE and each.end <= self._now]
        done = {each.task for each in ended}
        self._won += len(done - {each.task for each in ended if not each.replica})
        for machine in self._fleet.machines if done else ():
            if machine.task in done:
                machine.task = IDLE

    def _is_unpaid_copy(self, machine: Machine) -> bool:
        """A machine has one slot, so that a copy shares it with nothing."""
        return machine.replica and must_stop(
            machine.paid_until, self._now, last_attempt=False, shared=lambda: False
        )

    def _take(self, machine: Machine) -> None:
        """The next task; with migration, one that runs too slowly comes first."""
        if not self._waiting:
            return
        if self._way in MIGRATING:
            slow = self._slower_attempts(machine)
            running = [self._slides.on_average(each.task, self._ran([each])) for each in slow]
            moved = migration(running, self._place(machine)) if slow else None
            if moved is not None:
                origin = next(each for each in slow if each.task == moved)
                self._move(origin, machine)
                machine = origin
        self._start(machine, self._waiting.popleft())

    def _move(self, origin: Machine, machine: Machine) -> None:
        """From scratch, unless the way is the one that shows what that costs."""
        task, done = origin.task, (self._now - origin.started) / (origin.end - origin.started)
        part = 1 - done if self._way == "nothing lost" else 1.0
        machine.start(task, self._runtimes[machine.site][task] * part, self._now)
        self._migrations += 1

    def _slower_attempts(self, machine: Machine) -> list[Machine]:
        speed = SITES[machine.site].speed
        return [each for each in self._fleet.machines if each.task != IDLE and SITES[each.site].speed < speed]

    def _ran(self, attempts: Sequence[Machine]) -> list[tuple[str, float]]:
        return [(SITES[each.site].name, self._now - each.started) for each in attempts]

    def _replicate(self) -> None:
        idle = [
            machine
            for machine in self._fleet.idle()
            if machine.paid_until > self._now and SITES[machine.site].name in self._expectation.sites
        ]
        if not idle:
            return
        attempts = self._attempts()
        if self._way == "random":
            # Of tasks that run once.
            single = [task for task, machines in attempts.items() if len(machines) == 1]
            self._draw.shuffle(single)
            pairs = list(zip(single, idle, strict=False))
        else:
            running = {task: self._ran(each) for task, each in attempts.items()}
            places = dict(enumerate(idle))
            free = [self._place(each, number) for number, each in places.items()]
            chosen = worthwhile_copies(running, free, self._expectation, self._rule)
            pairs = [(each.task, places[each.processor]) for each in chosen]
        for task, machine in pairs:
            self._start(machine, task, replica=True)
            self._replicas += 1

    def _place(self, machine: Machine, number: int = 0) -> IdleProcessor:
        return IdleProcessor(number, SITES[machine.site].name, machine.paid_until - self._now)

    def _start(self, machine: Machine, task: int, replica: bool = False) -> None:
        machine.start(task, self._runtimes[machine.site][task], self._now, replica)


def migration(running: Sequence[RunningTask], place: IdleProcessor) -> int | None:
    """The task to be moved to this processor: the one that ends last, if it ends sooner there; or none.

    As a replica, but the first attempt is killed, so that its processor takes another task.
    """
    return next((replica.task for replica in replicas(running, [place])), None)
