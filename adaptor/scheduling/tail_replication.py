"""The tail of a bag: which running tasks are started once more, and where (BaTS, Tail Phase). Pure.

Oprescu & Kielmann: on idle processors that are paid, replicate the task that is expected to end last, if
it would end sooner there. `adaptor.budget.provisioning.tail_phase` decides; this module says what runs and
what is idle.
"""

from __future__ import annotations

import math
from functools import partial

import msgspec

from adaptor.budget.provisioning.tail_phase import (
    DAEMON,
    IdleProcessor,
    LateByItsNode,
    must_stop,
    worthwhile_copies,
)
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.donated_nodes import fits_donated
from adaptor.scheduling.placement import lines_of, those_for_gpus, waiting_bags
from adaptor.scheduling.state import PaidCopy, SchedulingState
from adaptor.scheduling.workers import Worker

_PLACES = 64  # idle processors that are looked at


class Copy(msgspec.Struct, frozen=True):
    """A replica to be started."""

    worker: Worker
    task: int
    needs: float
    """Seconds that must be left of the pilot when it starts."""
    until: float
    """Epoch seconds up to which its place is paid."""


def copies(state: SchedulingState, bag: Bag, now: float) -> list[Copy]:
    """The replicas that are worth starting now on all idle workers; no task of the bag waits.

    A bag that pays for its pilots replicates only in time that is charged in any case: until the end of the
    charging unit that has begun, or as long as another task is expected to run in the same pilot.
    """
    # A place for a task on several nodes would be several nodes that are idle together.
    several = bag.task.nodes > 1 and not bag.sizes.mixed
    running = {} if several else _running(state, bag, now)
    if not running:
        return []
    known = {
        site: state.sample_at(bag.id, site)
        for site in state.sites
        if bag.spec.allows(site) and state.learner(bag.id, site).mean is not None
    }
    sites = {site for attempts in running.values() for site, _ in attempts}
    expectation = LateByItsNode({site: state.sample_at(bag.id, site) for site in sites}, known)
    places = _places(state, bag, expectation.sites, now) if known else []

    def allowed(task: int, number: int) -> bool:
        worker, size = places[number][0], bag.sizes.of(task)
        if any(AttemptKey(bag.id, task, attempt) in worker.held for attempt in bag.live[task]):
            return False
        # One on several nodes would need them idle together.
        if bag.sizes.mixed and not (size.nodes == 1 and worker.free.holds(size)):
            return False
        if worker.pilot in state.donated:
            return fits_donated(state, bag, worker, task, now)
        return worker.can_finish(state.needs(bag, worker.site, task), now)

    idle = [IdleProcessor(number, worker.site, until - now) for number, (worker, until) in enumerate(places)]
    rule = msgspec.structs.replace(DAEMON, copies=bag.spec.replicas)
    return [
        Copy(worker, copy.task, state.needs(bag, worker.site, copy.task), until)
        for copy in worthwhile_copies(running, idle, expectation, rule, allowed)
        for worker, until in [places[copy.processor]]
    ]


def _paid(state: SchedulingState, bag: Bag, now: float) -> dict[int, float]:
    """By pilot of a bag that pays: epoch seconds up to which it is charged whatever it does."""
    paid = {
        pilot: meter.paid_until(now)
        for pilot, meter in state.meters.items()
        if state.owners.get(pilot) == bag.id
    }
    for worker in state.workers.values():
        if state.owners.get(worker.pilot) == bag.id:
            runtimes = state.sample_at(bag.id, worker.site)
            ends = (
                held.started + runtimes.whole(max(0.0, now - held.started))
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


def _running(state: SchedulingState, bag: Bag, now: float) -> dict[int, list[tuple[str, float]]]:
    """By task that may be replicated: the site and the seconds so far of each attempt that has started.

    A suspect is not replicated: it might take two workers down.
    """
    found: dict[int, list[tuple[str, float]]] = {}
    for worker in state.workers.values():
        if worker.site not in state.sites:  # the configuration no longer has it; its pilot is left alone
            continue
        # Its end would be known by now only if it was that much earlier.
        on_the_way = 2 * state.sites[worker.site].latency
        for key, held in worker.held.items():
            if key.bag == bag.id and held.started is not None and key.task in bag.live:
                found.setdefault(key.task, []).append(
                    (worker.site, max(0.0, now - held.started - on_the_way))
                )
    return {
        task: each
        for task, each in found.items()
        if len(bag.live[task]) <= bag.spec.replicas and task not in bag.losses
    }


def _places(state: SchedulingState, bag: Bag, sites: set[str], now: float) -> list[tuple[Worker, float]]:
    """Idle processors, each with the instant up to which it is paid.

    Of each worker only one where the tasks differ in size: a second replica may no longer fit.
    """
    found: list[tuple[Worker, float]] = []
    paid = _paid(state, bag, now) if bag.id in state.alone else {}
    uses_gpus = any(line.task.gpus for line in bag.lines)
    for worker in state.workers.values():
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
