"""A pilot, its life by the scheduler's reports, and the pilots of a site. Pure: the time is an argument."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from adaptor.crafting.reasons import shown
from adaptor.crafting.situation import PilotView, ShapeAt
from adaptor.model import PILOT_TRANSITIONS, AttemptOutcome, PilotState, QueueState, Request
from adaptor.reports import TURN, Hold, JobReport, JobState, Wait
from adaptor.shortfalls import Shortfall
from adaptor.units import folded, format_duration

CANCEL_AGAIN = 120.0  # seconds until a pilot that got the order to end, and is still there, gets it again
MISSES_TO_VANISH = 3  # consecutive answers without the pilot after which it may count as vanished
DENIED_FOR = 30.0
"""Seconds for which those answers must go on if the scheduler says that it has no such job, or shows another
job of the same number: it was restored from a backup, or began again."""
LEFT_OUT_FOR = 600.0
"""Seconds for which they must go on if they only leave it out: an answer may be cut, empty or another
cluster's for a while, and a pilot that is given up for lost loses its place in the queue."""

_MOST_NOTES = 3  # of a pilot that are shown together

NO_LIMIT = 10 * 365 * 86_400  # seconds that stand for a time limit without end

LOSS_WORDS = {
    PilotState.WALLTIME: AttemptOutcome.WALLTIME,
    PilotState.PREEMPTED: AttemptOutcome.PREEMPTED,
    PilotState.CANCELLED: AttemptOutcome.CANCELLED,
}
"""Outcome of the attempts that ended with a pilot, by the pilot's end; other attempts are merely lost."""


class Arrival(msgspec.Struct, frozen=True):
    """A worker that has called from a node of its pilot."""

    processors: int
    """Processors that its pilot asked for there."""
    shortfalls: tuple[Shortfall, ...] = ()
    """Resources of which the worker got less."""


class Absence(msgspec.Struct, frozen=True):
    """The scheduler's answer about a pilot that it does not name."""

    denied: bool = False
    """The scheduler says that it has no such job."""
    other: str = ""
    """The name of another job that has its number."""


LEFT_OUT = Absence()


class Pilot(PilotView, frozen=True, kw_only=True):
    """A request that was submitted, or is about to be; formal, or for a donated node.

    Its `request` is as it stands in the queue: we may change it there, and its owner by hand. `processors`
    and `rooms` are those of its workers at the last snapshot. Times are epoch seconds.
    """

    submitted: float = 0.0
    """Epoch seconds at which the intent was written down."""
    tag: str = ""
    """Tag by which the scheduler knows that it is ours."""
    array: int | None = None
    """The first pilot of the array with which it was decided; None: it was decided alone."""
    node: str = ""
    """The donated node; empty: a formal request."""
    granted: float = math.inf
    """Seconds that the scheduler gave it; tr before that."""
    seen_running: bool = False
    """Whether the scheduler has said that it runs."""
    ended: float | None = None
    end_reason: str = ""
    yielded: float | None = None
    """Seconds from the call to make room until nothing of it ran."""
    known_since: float = 0.0
    """Epoch seconds at which this daemon learned of it."""
    first_hello: float | None = None
    """Epoch seconds at which its first worker called; None: none has."""
    worked: bool = False
    """Whether a task was ever leased to it."""
    cancel_sent: float | None = None
    """Epoch seconds of the last order to the scheduler to end it; None: there was none."""
    notes: Mapping[str, str] = {}
    """Problems of the pilot, as reported: by node, by NODES, or by "" for the pilot itself."""
    nodes: tuple[str, ...] = ()
    """Nodes while it runs, as the scheduler names them; empty: not known."""
    arrivals: Mapping[str, Arrival] = {}
    """Workers by node that have called since this daemon started, those that have left among them."""
    never: str = ""
    """Why the scheduler can never start it, in its words; empty: it can."""
    wait: Wait = TURN
    """Why it waits, by the scheduler's word at the last look; as `JobReport.wait`."""
    limited_since: float | None = None
    """Epoch seconds since which a limit of its user, account or QOS has kept it waiting; None: none does."""
    held: int | None = None
    """Processors that it has by the scheduler's own count, since it started; None: that is not told."""
    unheard: str | None = None
    """Messages in its folder from workers that never reached the daemon; None: the folder was not read
    yet."""
    wanted_since: float | None = None
    """Epoch seconds since which a local job has been seen to want its donated node."""
    without_worker_since: float | None = None
    """Epoch seconds since which it has run without a worker that reports; None: it has one, or does not
    run."""
    fell_silent: bool = False
    """Whether a worker of it fell silent: it may report again."""
    told_partition: str = ""
    """Partition where the scheduler last had it; empty: not known yet."""
    put_back: bool = False
    """Whether it ran before and was put back into the queue."""
    begins: float | None = None
    """Epoch seconds until which the scheduler holds it in its queue; None: it does not, or does not say."""
    misses: int = 0
    """Answers in a row that did not name it."""
    missing_since: float | None = None
    """Epoch seconds of the first of these answers; None: the last one named it."""
    wait_known: bool = False
    """Whether its site has learned how long it waited."""

    @property
    def note(self) -> str:
        """All that is wrong with it, for the user."""
        first = list(self.notes.values())[:_MOST_NOTES]
        more = len(self.notes) - len(first)
        return "; ".join([*first, f"{more} more: see adaptor why"] if more else first)

    @property
    def since(self) -> float:
        """Epoch seconds of its start, or of its submission before it starts."""
        return self.submitted if self.started is None else self.started

    @property
    def holds(self) -> int:
        """Processors that it has by the scheduler's count, else those that it asks for."""
        return self.request.p if self.held is None else self.held

    @property
    def asked(self) -> ShapeAt | None:
        """The shape of its tasks and its partition; None: the shape is not known."""
        return (self.shape, self.partition) if self.shape is not None else None

    @property
    def settled(self) -> bool:
        """Whether it runs on a donated node with its worker, and no rule concerns it until that changes."""
        return (
            self.state is PilotState.RUNNING
            and self.first_hello is not None
            and self.processors is not None
            and self.without_worker_since is self.wanted_since is None
            and not (self.leaving or self.notes or self.misses or self.never or self.fell_silent)
            and self._is_complete
        )

    @property
    def _is_complete(self) -> bool:
        """Whether the worker of its only node has called and got all it asked for."""
        (arrival, *others) = self.arrivals.values() or (Arrival(0),)
        return not others and not arrival.shortfalls and arrival.processors >= self.request.p

    def to_cancel(self, now: float) -> bool:
        """Whether to tell the scheduler to end it: it never was, or that order was lost."""
        sent = self.cancel_sent
        return bool(self.leaving) and (sent is None or not 0 <= now - sent < CANCEL_AGAIN)

    def but(self, **changes: Any) -> Pilot:
        """The pilot with other values of these fields.

        Raises:
            ValueError: the table of transitions does not allow its new state.
        """
        state = changes.get("state", self.state)
        if state is not self.state and state not in PILOT_TRANSITIONS[self.state]:
            raise ValueError(f"pilot {self.id}: {self.state.value} does not become {state.value}")
        if not changes.keys().isdisjoint(("started", "granted")):
            started = changes.get("started", self.started)
            granted = changes.get("granted", self.granted)
            changes["ends"] = None if started is None else started + granted
        return msgspec.structs.replace(self, **changes)

    def reshaped_to(self, request: Request, now: float) -> Pilot:
        """The scheduler has another request of it, in its place in the queue."""
        return self.but(request=request, granted=request.tr, reshaped=now)

    def watched(self, now: float, *, heard: bool) -> Pilot:
        """Take in whether a worker of it is known now."""
        since, silent = self.without_worker_since, self.fell_silent
        if self.state is not PilotState.RUNNING or heard:
            since, silent = None, False
        elif since is None:
            since = now
        if (since, silent) == (self.without_worker_since, self.fell_silent):
            return self
        return self.but(without_worker_since=since, fell_silent=silent)

    def heard(self, now: float, node: str, arrival: Arrival) -> Pilot:
        """A worker of it has called: it runs, whatever the scheduler has said so far."""
        pilot = self.but(
            notes={about: text for about, text in self.notes.items() if about},
            arrivals={**self.arrivals, node: arrival},
            first_hello=now if self.first_hello is None else self.first_hello,
        )
        if self.state not in (PilotState.SUBMITTING, PilotState.QUEUED):
            return pilot
        return pilot.but(state=PilotState.RUNNING, started=now if self.started is None else self.started)

    def over(self, state: PilotState, at: float, reason: str) -> Pilot:
        """The pilot after its end."""
        return self.but(state=state, ended=at, end_reason=reason)


def request_told(pilot: Pilot, report: JobReport, asked: Request, reserved: Request) -> Request:
    """The pilot's request as the scheduler shows it, with tr in the scheduler's resolution.

    After its start this is what it got: a request with a least time may get less than its tr.

    Its owner may have changed it by hand, the processors until it starts and tr at any time; or a daemon that
    did not live to hear whether the scheduler took its change. Of a job that has started, a scheduler may
    tell what it gave, which may be rounded up; so more processors than were asked for only count where the
    time limit or the ledger shows that a change was on its way.

    Args:
        asked: its request as far as is known.
        reserved: the reserved request, which is the larger one while a change is on its way.
    """
    tr = asked.tr if report.limit is None else int(min(report.limit, NO_LIMIT))
    there = report.processors
    if there is None or pilot.seen_running:
        return asked.lasting(tr)
    if report.state is not JobState.QUEUED and there > asked.p and tr == asked.tr:
        there = min(there, max(asked.p, reserved.p))
    return msgspec.structs.replace(asked, p=there).lasting(tr)


def is_limit(wait: Wait) -> bool:
    """Whether a limit of the user, account or QOS keeps a job waiting, which new requests would meet too."""
    return wait.hold in (Hold.LIMIT, Hold.SPENT)


def limited(pilots: Iterable[Pilot]) -> dict[str, str]:
    """A sentence by partition in which a request waits for a limit of its user, account or QOS."""
    return {
        pilot.partition: f"pilot {pilot.id} waits: {pilot.wait.said}"
        for pilot in pilots
        if pilot.state is PilotState.QUEUED and is_limit(pilot.wait) and not pilot.leaving
    }


def has_become(report: JobReport, told: Request, known: Request) -> str:
    """A sentence on the change of a request by the scheduler, or by its owner by hand."""
    started = report.state is not JobState.QUEUED
    if started and told.p == known.p and known.least is not None and known.least <= told.tr < known.tr:
        got = format_duration(told.tr)
        return f"started with {got}: the free slot held that much of {shown(known)}"
    return f"the scheduler has it as {shown(told)}, no longer as {shown(known)}"


def moved_to(pilot: Pilot, report: JobReport) -> str:
    """The partition to which it was moved; empty: it is where it was, as far as is known."""
    known = pilot.told_partition  # a site may call a partition by another name
    return report.partition if known and report.partition != known else ""


def expected_start(pilot: Pilot, queue: QueueState | None, now: float) -> float | None:
    """Expected start of a queued pilot (epoch seconds), by the scheduler's plan or as predicted.

    None: it does not start as it is, its start is unknown, or the time has passed.
    """
    if pilot.started is not None or pilot.leaving or pilot.never or pilot.wait.hold is not Hold.NONE:
        return None
    pending = () if queue is None else queue.in_partition(pilot.partition).pending
    plan = next((job.planned_start for job in pending if job.id == pilot.job), None)
    due = pilot.predicted_start if plan is None else plan
    return due if due is not None and due > now else None


def told_end(pilot: Pilot) -> str:
    """A pilot's end, in words for the user."""
    ran = f" after {format_duration(pilot.ended - pilot.started)}" if pilot.started and pilot.ended else ""
    return f"{pilot.state.value}{ran}{f': {pilot.end_reason}' if pilot.end_reason else ''}"


def told_ends(pilots: Sequence[Pilot]) -> str:
    """The end of several pilots that ended in the same way, in words for the user."""
    first = pilots[0]
    if len(pilots) == 1:
        return told_end(first)
    ran = [pilot.ended - pilot.started for pilot in pilots if pilot.started and pilot.ended]
    shortest, longest = (format_duration(f(ran)) if ran else "" for f in (min, max))
    after = f" after {shortest if shortest == longest else f'{shortest} to {longest}'}" if ran else ""
    why = f": {first.end_reason}" if first.end_reason else ""
    ids = folded(pilot.id for pilot in pilots)
    return f"{len(pilots)} pilots ({ids}) are {first.state.value}{after}{why}"


def observe(pilot: Pilot, report: JobReport, now: float) -> Pilot:
    """Take in the scheduler's word on a pilot in the system."""
    queued, running = report.state is JobState.QUEUED, report.state is JobState.RUNNING
    seen = pilot.but(
        misses=0,
        missing_since=None,
        seen_running=not queued,
        job=report.id,
        never=report.never,
        begins=report.begins if queued else None,
        told_partition=report.partition or pilot.told_partition,
        wait=report.wait if queued else TURN,
        limited_since=(pilot.limited_since or now) if queued and is_limit(report.wait) else None,
        held=report.held if pilot.held is None else pilot.held,
        started=pilot.started if report.start is None or queued else report.start,
        granted=pilot.granted if report.granted is None else report.granted,
        nodes=report.nodes if running else pilot.nodes,
        yielded=pilot.yielded if report.yielded is None else report.yielded,
    )
    ended = report.state.ended
    if ended is not None:
        reason = seen.leaving or report.reason
        if ended is PilotState.PREEMPTED:
            reason = report.reason or ("a local job wanted its node" if seen.node else reason)
        never_ran = report.start is None and seen.started is None
        if ended is PilotState.CANCELLED and never_ran and seen.leaving:
            ended = PilotState.WITHDRAWN
        return seen.over(ended, report.end if report.end is not None else now, reason)
    if running and pilot.state is not PilotState.RUNNING:
        return seen.but(state=PilotState.RUNNING, started=now if seen.started is None else seen.started)
    if queued and pilot.state is not PilotState.QUEUED:
        put_back = pilot.put_back or pilot.state is PilotState.RUNNING
        return seen.but(
            state=PilotState.QUEUED, started=None, first_hello=None, arrivals={}, put_back=put_back
        )
    return seen


def miss(pilot: Pilot, now: float, *, alive: bool, settle_time: float, absence: Absence = LEFT_OUT) -> Pilot:
    """The scheduler's answer does not name a pilot in the system: it may have ended.

    Missing never means completed: a pilot that was just submitted may still appear, one whose workers report
    runs, and any other has vanished only after several such answers over some time. Then it counts as ended
    when it was first missing.

    Args:
        alive: whether one of its workers has reported lately.
        settle_time: seconds after which a submit that left no trace has not happened.
        absence: what the answer says of it.
    """
    if pilot.state is PilotState.SUBMITTING:
        if now - pilot.submitted < settle_time:
            return pilot
        return pilot.over(
            PilotState.REFUSED, now, "the submit command failed, and the scheduler never had the request"
        )
    if alive:
        return pilot.but(misses=0, missing_since=None)
    since = now if pilot.missing_since is None else min(pilot.missing_since, now)  # a clock may be set back
    missed = pilot.but(misses=pilot.misses + 1, missing_since=since)
    patience = DENIED_FOR if absence.denied or absence.other else LEFT_OUT_FOR
    # No scheduler has it, or not in the way in which the site donates by now; and its workers have left.
    if pilot.leaving and (pilot.job is None or pilot.node):
        patience = 0.0
    if missed.misses < MISSES_TO_VANISH or now - since < patience:
        return missed
    return missed.over(PilotState.VANISHED, max(since, missed.since), _why_vanished(missed, absence))


def _why_vanished(pilot: Pilot, absence: Absence) -> str:
    if absence.other:
        return (
            f"its number {pilot.job} is another job's, {absence.other[:80]!r}, which is left alone: the "
            "scheduler has lost the pilot and given its number away, or the site changes names and comments"
        )
    return "the scheduler does not know it any more and has no record of its end"


class PilotTable(Mapping[int, Pilot]):
    """Pilots by id. The time for a step grows with the changes: most pilots on donated nodes run, and no rule
    concerns them.

    A pilot is set, or deleted: no other change keeps it sorted.
    """

    def __init__(self) -> None:
        self._pilots: dict[int, Pilot] = {}
        self.requests: dict[int, Pilot] = {}  # formal ones
        self.donated: dict[int, Pilot] = {}  # on donated nodes
        self.unsettled: dict[int, Pilot] = {}  # of those: without the ones that are `settled`
        self.by_node: dict[str, Pilot] = {}  # by donated node: the last pilot for it
        self.touched: set[str] = set()  # donated nodes whose pilots have changed; the reader clears it

    @property
    def concerned(self) -> tuple[Pilot, ...]:
        """Pilots that a rule on single pilots may concern: all but the settled ones."""
        return (*self.requests.values(), *self.unsettled.values())

    def __getitem__(self, id: int) -> Pilot:
        return self._pilots[id]

    def __contains__(self, id: object) -> bool:
        return id in self._pilots

    def __iter__(self) -> Iterator[int]:
        return iter(self._pilots)

    def __len__(self) -> int:
        return len(self._pilots)

    def __setitem__(self, id: int, pilot: Pilot) -> None:
        self._pilots[id] = pilot
        if not pilot.node:
            self.requests[id] = pilot
            return
        self.donated[id] = pilot
        self.touched.add(pilot.node)
        if pilot.settled:
            self.unsettled.pop(id, None)
        else:
            self.unsettled[id] = pilot
        known = self.by_node.get(pilot.node)
        if known is None or known.id <= id:
            self.by_node[pilot.node] = pilot

    def __delitem__(self, id: int) -> None:
        pilot = self._pilots.pop(id)
        if not pilot.node:
            del self.requests[id]
            return
        del self.donated[id]
        self.touched.add(pilot.node)
        self.unsettled.pop(id, None)
        if self.by_node[pilot.node].id == id:
            del self.by_node[pilot.node]
