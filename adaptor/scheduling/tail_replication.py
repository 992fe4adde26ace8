"""The tail of a bag: which running tasks are started once more, and where (BaTS, Tail Phase). Pure.

First those that the end of their pilot may cut; then, by Oprescu & Kielmann, the task that is expected to end
last, if it would end sooner on an idle processor that is paid. `adaptor.budget.provisioning.tail_phase`
decides; this module says what runs and what is idle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from adaptor.budget.provisioning.tail_phase import (
    DAEMON,
    LIKELY,
    LONGER,
    IdleProcessor,
    LateByItsNode,
    Threatened,
    must_stop,
    safe_copies,
    worthwhile_copies,
)
from adaptor.model import TaskState
from adaptor.protocol.messages import AttemptKey
from adaptor.runtimes.survival import Survival
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.donated_nodes import fits_donated
from adaptor.scheduling.placement import lines_of, those_for_gpus, waiting_bags
from adaptor.scheduling.state import PaidCopy, SchedulingState
from adaptor.scheduling.task_needs import seconds_to_start
from adaptor.scheduling.workers import Worker

ASTRAY = 2.0  # times the longest runtime of others from which on a task is late by its node, most likely
_PLACES = 64  # idle processors that are looked at

Attempts = list[tuple[Worker, float]]  # of one task: the worker and the seconds so far of each attempt


class Copy(msgspec.Struct, frozen=True):
    """A replica to be started."""

    worker: Worker
    task: int
    needs: float
    """Seconds that must be left of the pilot when it starts."""
    until: float
    """Epoch seconds up to which its place is paid."""


def may_replicate(bag: Bag) -> bool:
    """Whether an idle slot may start tasks of a bag once more; none of them waits."""
    # The next tasks of an open bag take the processors. Two attempts would write the same checkpoint; and
    # what is aborted runs on for a moment. A place on several nodes would be several that are idle together.
    if bag.guard.paused or bag.open or bag.spec.requeue_on or bag.max_running is not None:
        return False
    if bag.task.nodes > 1 and not bag.sizes.mixed:
        return False
    return bag.spec.replicas > 0 and not bag.count(TaskState.WAITING) and bag.count(TaskState.LEASED) > 0


def likely_cuts(state: SchedulingState, bag: Bag, now: float) -> list[Threatened]:
    """The tasks for which a pilot is asked, so that a copy may start there; a bag that pays plans for it."""
    if bag.id in state.alone or not may_replicate(bag):
        return []
    found = _Tail(state, bag, _running(state, bag, now), [], now).threatened()
    return [each for each in found if each.chance >= LIKELY]


def copies(state: SchedulingState, bag: Bag, now: float) -> list[Copy]:
    """The replicas that are worth starting now on all idle workers; no task of the bag waits.

    A bag that pays for its pilots replicates only in time that is charged in any case: until the end of the
    charging unit that has begun, or as long as another task is expected to run in the same pilot.
    """
    running = _running(state, bag, now)
    known = {
        site for site in state.sites if bag.spec.allows(site) and state.learner(bag.id, site).seen.finished
    }
    places = _places(state, bag, known, now) if running and known else []
    if not places or _some_come_back(state, bag):
        return []
    rule = _Tail(state, bag, running, places, now)
    idle = [
        IdleProcessor(number, worker.site, min(until - now, worker.time_left(now)))
        for number, (worker, until) in enumerate(places)
    ]
    safe = safe_copies(rule.threatened(), idle, rule.may_run)
    used, copied = {copy.processor for copy in safe}, {copy.task for copy in safe}
    late = worthwhile_copies(
        {
            task: [(worker.site, ran) for worker, ran in attempts]
            for task, attempts in running.items()
            if task not in copied
        },
        [place for place in idle if place.processor not in used],
        LateByItsNode(rule.times, {worker.site for worker, _ in places}),
        msgspec.structs.replace(DAEMON, copies=bag.spec.replicas),
        rule.may_be_late,
    )
    return [
        Copy(worker, copy.task, seconds_to_start(state, bag, worker.site, copy.task), until)
        for copy in (*safe, *late)
        for worker, until in [places[copy.processor]]
    ]


class _Tail:
    """Running tasks of a bag, and the workers to which they may be copied."""

    def __init__(
        self,
        state: SchedulingState,
        bag: Bag,
        running: Mapping[int, Attempts],
        places: Sequence[tuple[Worker, float]],
        now: float,
    ) -> None:
        self._state, self._bag, self._running, self._now = state, bag, running, now
        self._workers = [worker for worker, _ in places]
        attempts = [each for found in running.values() for each in found]
        self._busy = {worker.pilot for worker, _ in attempts}
        self._ages: dict[str, list[float]] = {}
        for worker, ran in attempts:
            self._ages.setdefault(worker.site, []).append(ran)
        sites = {*self._ages, *(worker.site for worker in self._workers)}
        self.times = {site: Survival(state.sample_at(bag.id, site)) for site in sites}

    def may_run(self, task: int, place: int) -> bool:
        state, bag, worker = self._state, self._bag, self._workers[place]
        size = bag.sizes.of(task)
        if any(AttemptKey(bag.id, task, attempt) in worker.held for attempt in bag.live[task]):
            return False
        # One on several nodes would need them idle together.
        if bag.sizes.mixed and not (size.nodes == 1 and worker.free.holds(size)):
            return False
        if worker.pilot in state.donated:
            return fits_donated(state, bag, worker, task, self._now)
        return worker.can_finish(seconds_to_start(state, bag, worker.site, task), self._now)

    def may_be_late(self, task: int, place: int) -> bool:
        """Whether a copy may run there because the task is late.

        A pilot in which nothing runs would leave, and others would have its processors: the task must be far
        later than any other, or the site be a faster one.
        """
        worker, attempts = self._workers[place], self._running[task]
        if self._bag.id not in self._state.alone and worker.pilot not in self._busy:
            here = self.times[worker.site].late(0.0)
            faster = all(here < self.times[each.site].late(0.0) for each, _ in attempts)
            astray = any(ran >= ASTRAY * self.times[each.site].longest for each, ran in attempts)
            if not faster and not astray:
                return False
        return self.may_run(task, place)

    def threatened(self) -> list[Threatened]:
        """The tasks whose only attempt the end of its pilot may cut, where some have finished."""
        state, bag = self._state, self._bag
        known = {
            site: Survival(state.sample_at(bag.id, site), ages)
            for site, ages in self._ages.items()
            if state.learner(bag.id, site).seen.finished
        }
        found = []
        for task, attempts in self._running.items():
            (worker, ran), *others = attempts
            if others or worker.site not in known or bag.sizes.of(task).nodes > 1:
                continue
            survival, left = known[worker.site], worker.time_left(self._now) - state.sites[worker.site].last
            after = ran + max(0.0, left)
            enough = max(LONGER * after, survival.longest)
            if enough <= state.sites[worker.site].longest and after < bag.spec.ended_after:
                chance = survival.chance(ran, after)
                found.append(Threatened(task=task, site=worker.site, chance=chance, enough=enough))
        return found


def _paid(state: SchedulingState, bag: Bag, now: float) -> dict[int, float]:
    """Epoch seconds up to which a pilot of a bag that pays is charged in any case, by pilot."""
    paid = {
        pilot: meter.paid_until(now)
        for pilot, meter in state.meters.items()
        if state.owners.get(pilot) == bag.id
    }
    sites = {worker.site for worker in state.workers.values()}
    times = {site: Survival(state.sample_at(bag.id, site)) for site in sites}
    for worker in state.workers.values():
        if state.owners.get(worker.pilot) == bag.id:
            ends = (
                held.started + times[worker.site].whole(max(0.0, now - held.started))
                for key, held in worker.held.items()
                if held.started is not None and key not in state.copies
            )
            paid[worker.pilot] = max(paid.get(worker.pilot, now), *ends, now)
    return paid


def stop_unpaid_copies(state: SchedulingState, now: float) -> None:
    """End the replicas whose paid time is over, so that they never cost another unit."""
    for key, copy in list(state.copies.items()):
        worker = state.workers.get(copy.worker)
        # Whether the task runs nowhere else any more: what it has done here is not to be lost.
        bag = state.bags.get(key.bag)
        alone = bag is not None and bag.live.get(key.task) == {key.attempt}
        if worker is None or alone:
            del state.copies[key]
        elif copy.until is None:
            if worker.pilot in state.meters:
                until = state.meters[worker.pilot].paid_until(now)
                state.copies[key] = PaidCopy(copy.worker, until)
        elif must_stop(copy.until, now, last_attempt=alone, shared=partial(_others_run, state, worker)):
            state.abort(worker, key)


def _others_run(state: SchedulingState, worker: Worker) -> bool:
    """Whether the pilot of a worker runs anything but replicas."""
    return any(
        key not in state.copies and held.started is not None
        for other in state.workers.values()
        if other.pilot == worker.pilot
        for key, held in other.held.items()
    )


def _running(state: SchedulingState, bag: Bag, now: float) -> dict[int, Attempts]:
    """Worker and seconds so far of each attempt that has started, by task that may be replicated.

    A suspect is not replicated: it might take two workers down.
    """
    found: dict[int, Attempts] = {}
    for worker in state.workers.values():
        if worker.site not in state.sites:  # the configuration no longer has it; its pilot is left alone
            continue
        # Its end would be known by now only if it was that much earlier.
        on_the_way = 2 * state.sites[worker.site].latency
        for key, held in worker.held.items():
            if key.bag == bag.id and held.started is not None and key.task in bag.live:
                ran = max(0.0, now - held.started - on_the_way)
                found.setdefault(key.task, []).append((worker, ran))
    return {
        task: each
        for task, each in found.items()
        if len(bag.live[task]) <= bag.spec.replicas and task not in bag.losses
    }


def _some_come_back(state: SchedulingState, bag: Bag) -> bool:
    """Whether a worker was asked for unstarted tasks and has not answered: an idle slot is for these."""
    return any(
        key.bag == bag.id and worker.held[key].give_back_sent
        for worker in state.workers.values()
        for key in worker.unstarted
    )


def _places(state: SchedulingState, bag: Bag, sites: set[str], now: float) -> list[tuple[Worker, float]]:
    """Idle processors, each with the instant up to which it is paid; those that last longest first.

    Of each worker only one where the tasks differ in size: a second replica may no longer fit.
    """
    found: list[tuple[Worker, float]] = []
    paid = _paid(state, bag, now) if bag.id in state.alone else {}
    uses_gpus = any(line.task.gpus for line in bag.lines)
    for worker in sorted(state.workers.values(), key=lambda each: -each.deadline):
        if worker.awaited or worker.site not in sites or not state.serves(worker, bag):
            continue
        if worker.runs_suspects:
            continue
        if worker.whole.gpus and not uses_gpus:
            turns = lines_of(waiting_bags(state, worker))
            if those_for_gpus(state, worker, turns, now):
                continue
        slots = worker.free.slots(bag.task) if not bag.sizes.mixed else int(worker.free.processors > 0)
        slots = min(_PLACES - len(found), slots)
        if slots > 0:
            found += [(worker, paid.get(worker.pilot, math.inf))] * slots
    return found
