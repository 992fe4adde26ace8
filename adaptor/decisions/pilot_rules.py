"""Rules on single pilots: those that do not start, those without a worker, the pad. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from adaptor.crafting.availability import availability
from adaptor.crafting.fits import chunk_of
from adaptor.decisions.actions import NODES, WAITS, Action, End, LengthenPad, Remark, WithdrawStuck
from adaptor.decisions.aims import Courses, why_not_another_unit, why_tasks_start_anew
from adaptor.decisions.failures.tried_sizes import KEPT, KEPT_IN_LIMITS
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.prolonging import why_unpaid
from adaptor.decisions.requests import billed, is_least, shape_of, smallest_to_try
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.model import PilotState, QueueState
from adaptor.protocol.messages import LAST_SECONDS
from adaptor.reports import Hold
from adaptor.shortfalls import gave_less
from adaptor.units import format_duration

UNREACHED = 40.0  # seconds without a call from any worker after which a running pilot is remarked on
ARRIVAL = 60.0
"""Seconds from its first worker's call for which the other nodes of a pilot may still get theirs."""
LEFT = 60.0  # seconds after the farewell of its last worker after which a running request is ended
SILENT = 360.0  # the same after its last worker fell silent while others of the site are heard
CUT_OFF = 900.0
"""Seconds of silence while no worker of the site is heard: behind a cut network workers go on with their
tasks."""
OVERDUE = 900.0
"""Seconds beyond its expected start for which a request may be queued although there is room for it."""
LIMITED = 20.0
"""Seconds for which a limit of several jobs must keep a request waiting before a smaller one is tried."""
ASK_SUPPORT = "ask the cluster's support about hooks and prologs that run where a job starts more processes"
"""The way out where workers start on some nodes of a pilot only."""
_DOUBLINGS = 4
_NAMED = 5  # nodes that a remark names


def is_unheard(pilot: Pilot, now: float) -> bool:
    """Whether it has run for long and no worker of it has called."""
    if pilot.state is not PilotState.RUNNING or pilot.started is None or pilot.first_hello is not None:
        return False
    return now - max(pilot.started, pilot.known_since) > UNREACHED


def on_pilots(snapshot: Snapshot) -> Iterator[Action]:
    """Withdrawals, remarks and a longer pad."""
    site, now, courses = snapshot.here, snapshot.now, Courses(snapshot)
    alike = set[object]()
    for pilot in (*site.requests, *site.unsettled):
        if stuck := why_too_large(snapshot, site, pilot):
            yield stuck
        elif pilot.state is PilotState.QUEUED and not pilot.leaving:
            kind = pilot.asked, pilot.request
            if kind not in alike and (why := why_overdue(site, snapshot.queue, pilot)):
                yield WithdrawStuck(pilot.id, why)
            alike.add(kind)  # of equal requests the oldest shows whether the scheduler starts them
        if why := (
            why_put_back(pilot, now)
            or why_forsaken(site, pilot, now)
            or why_not_another_unit(snapshot, courses, site, pilot)
            or why_tasks_start_anew(snapshot, courses, site, pilot)
            or why_unpaid(snapshot, pilot)
        ):
            yield End(pilot.id, why)
        yield from on_waiting(pilot)
        if is_unheard(pilot, now) and pilot.unheard is not None:
            yield from _unheard(snapshot, site, pilot, pilot.unheard)
        if pilot.first_hello is not None or pilot.notes:
            yield from on_arrivals(pilot, now)
    pad = max((_overhead(site, pilot) for pilot in site.requests), default=0.0)
    if pad > site.rules.pad:
        yield LengthenPad(pad)


def why_too_large(snapshot: Snapshot, site: SiteFacts, pilot: Pilot) -> WithdrawStuck | None:
    """Withdraws a queued request that the scheduler would never start as it is, and one that a limit of
    several jobs keeps waiting while none of ours runs that could end: a smaller one may be within it."""
    if pilot.state is not PilotState.QUEUED or pilot.leaving or pilot.node:
        return None
    since, spent = pilot.limited_since, pilot.wait.hold is Hold.SPENT
    patience = 0.0 if spent else max(LIMITED, site.poll)
    if not pilot.never and (since is None or snapshot.now - since < patience):
        return None
    last = _is_smallest(snapshot, site, pilot)
    if pilot.never:
        why = f"the scheduler would never start it: {pilot.never}"
        return WithdrawStuck(pilot.id, why, pilot.wait.remedy, KEPT, last)
    if last or any(other.state is PilotState.RUNNING for other in site.requests):
        return None
    why = f"{pilot.wait.said}; a smaller request may be within it"
    kept = KEPT if spent else KEPT_IN_LIMITS
    return WithdrawStuck(pilot.id, why, pilot.wait.remedy, kept, last)


def _is_smallest(snapshot: Snapshot, site: SiteFacts, pilot: Pilot) -> bool:
    """Whether there is no smaller request of any use to try in its place."""
    demand = next((each for each in snapshot.demands if each.shape == pilot.shape), None)
    if demand is None:
        return True
    least = smallest_to_try(shape_of(site, demand, pilot.partition), demand)
    return is_least(billed(site.rules, pilot.request), least, pilot.wait.remedy)


def on_waiting(pilot: Pilot) -> Iterator[Remark]:
    """The scheduler's reason for a waiting request, besides the jobs before it."""
    said = pilot.wait.said if pilot.state is PilotState.QUEUED and not pilot.leaving else ""
    if said or WAITS in pilot.notes:
        yield Remark(pilot.id, f"waits: {said}" if said else "", about=WAITS)


def covering_processors(pilot: Pilot, there: int, now: float) -> int:
    """Processors of a running pilot that cover waiting tasks: with a worker, or soon with one.

    Args:
        there: processors of its workers that are connected.
    """
    if pilot.first_hello is None or now >= pilot.first_hello + ARRIVAL:
        return there
    return there + _missing_processors(pilot)


def on_arrivals(pilot: Pilot, now: float) -> Iterator[Remark]:
    """Remarks on nodes that gave workers less than was asked for, and on nodes without a worker."""
    for node, arrival in pilot.arrivals.items():
        if arrival.shortfalls and node not in pilot.notes:
            text = (
                f"{gave_less(node, arrival.shortfalls)}, and the rest is paid for and idle. Show this to the "
                "cluster's support: a job has more than the steps in it (Slurm: TaskPluginParam; PBS: hooks)"
            )
            yield Remark(pilot.id, text, about=node)
    text = _without_worker(pilot, now)
    if text or NODES in pilot.notes:
        yield Remark(pilot.id, text, about=NODES)


def _without_worker(pilot: Pilot, now: float) -> str:
    """A sentence on nodes of a running pilot that have had no worker for too long; empty: none.

    After a restart the daemon does not know which workers had come and left before.
    """
    first, missing = pilot.first_hello, _missing_processors(pilot)
    if first is None or now < first + ARRIVAL or pilot.leaving or pilot.known_since > (pilot.started or now):
        return ""
    came = {_short(node) for node in pilot.arrivals}
    nodes = [node for node in pilot.nodes if _short(node) not in came]
    if len(nodes) == len(pilot.nodes):  # the scheduler names them otherwise, or not at all
        where = ""
    elif nodes:
        more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
        where = f" from {', '.join(nodes[:_NAMED])}{more}"
    else:
        return ""
    if not missing and not where:
        return ""
    counted_as = f"{missing} of {pilot.request.p} processors do not count" if missing else "they do not count"
    return (
        f"no worker has called{where} for {format_duration(ARRIVAL)} after the first: {counted_as}; the logs "
        f"in the pilot's folder may say why, else {ASK_SUPPORT}"
    )


def _missing_processors(pilot: Pilot) -> int:
    """Processors of nodes from which no worker has called."""
    came = sum(arrival.processors for arrival in pilot.arrivals.values())
    return max(0, pilot.request.p - came)


def _short(node: str) -> str:
    """Schedulers name a node with and without its domain."""
    return node.partition(".")[0].lower()


def why_put_back(pilot: Pilot, now: float) -> str:
    """Why not to wait for a request that ran and is back in the queue: the scheduler holds it for a while.

    Slurm does so for two minutes, in which a new one can start. One that never ran is held on purpose.
    """
    if pilot.state is not PilotState.QUEUED or not pilot.put_back or pilot.leaving or pilot.node:
        return ""
    if pilot.begins is None or pilot.begins <= now:
        return ""
    return f"it was put back into the queue, where it is held for {format_duration(pilot.begins - now)}"


def why_forsaken(site: SiteFacts, pilot: Pilot, now: float) -> str:
    """Why nothing can come of a running request any more: all of its workers are gone. Empty: something can.

    One whose workers never called is only remarked on: they may call as soon as what hinders them is over.
    """
    since = pilot.without_worker_since
    called = pilot.first_hello is not None or (pilot.started or 0.0) < pilot.known_since
    if pilot.node or pilot.leaving or since is None or not called:
        return ""
    patience = SILENT if any(other.processors for other in site.pilots) else CUT_OFF
    if pilot.first_hello is not None and not pilot.fell_silent:
        patience = LEFT
    if now - since <= patience:
        return ""
    return f"none of its workers has answered for {format_duration(now - since)}"


def why_overdue(site: SiteFacts, queue: QueueState | None, pilot: Pilot) -> str:
    """Why to give up waiting for a queued request: there is room for it, and it does not start.

    What stands in its way may be a rule that we do not see: the patience doubles with each such withdrawal.
    """
    if pilot.state is not PilotState.QUEUED or pilot.node or pilot.leaving or queue is None:
        return ""
    queue = queue.in_partition(pilot.partition)
    failures = site.failures.stuck.of(pilot.asked).failures if pilot.asked is not None else 0
    patience = OVERDUE * 2 ** min(failures, _DOUBLINGS)
    expected = pilot.submitted if pilot.predicted_start is None else pilot.predicted_start
    late = queue.now - max(expected, pilot.submitted)
    if late <= patience or not _has_room(site, queue, pilot):
        return ""
    return f"the queue has room for it, but the scheduler has not started it for {format_duration(late)}"


def _has_room(site: SiteFacts, queue: QueueState, pilot: Pilot) -> bool:
    """Whether a request could start at once next to all other jobs of the queue."""
    idle = queue.processors - sum(job.processors for job in queue.running)
    if idle < pilot.request.p:  # spares most steps the planning of a long queue
        return False
    others = tuple(job for job in queue.pending if job.id != pilot.job)
    if len(others) == len(queue.pending):  # the scheduler does not show it as one that could start
        return False
    unit = chunk_of(site.rules, queue, pilot.shape[0]) if pilot.shape is not None and queue.nodes else None
    free = availability(msgspec.structs.replace(queue, pending=others), unit)
    return free.earliest_start(pilot.request.p, pilot.request.tr) <= queue.now


def _unheard(snapshot: Snapshot, site: SiteFacts, pilot: Pilot, left: str) -> Iterator[Action]:
    ran = format_duration(snapshot.now - (snapshot.now if pilot.started is None else pilot.started))
    told = f"has run for {ran}, but none of its workers has reached the daemon"
    yield Remark(pilot.id, f"{told}; {site.unreachable_because} {left}".strip())
    if not snapshot.work:
        yield End(pilot.id, "no tasks are left, and none of its workers can be reached")


def _overhead(site: SiteFacts, pilot: Pilot) -> float:
    """Seconds of the pilot that no task could use; 0 where that is not known."""
    if pilot.state is not PilotState.RUNNING or pilot.started is None or pilot.first_hello is None:
        return 0.0
    # Its workers may have called while no daemon listened; simulated ones need no start-up.
    if pilot.known_since > pilot.started or pilot.first_hello <= pilot.started:
        return 0.0
    overhead = pilot.first_hello - pilot.started + LAST_SECONDS + 1
    return min(overhead, site.rules.limits.max_tr / 2)
