"""The life of one pilot, from the scheduler's reports. Pure: the time is an argument."""

from __future__ import annotations

from adaptor.crafting.situation import ShapeAt, TaskShape
from adaptor.decisions.snapshot import PilotFacts
from adaptor.model import PILOT_TRANSITIONS, AttemptOutcome, PilotState, Request
from adaptor.reports import JobReport, JobState
from adaptor.resources import Room

CANCEL_AGAIN = 120.0
"""Seconds after which a pilot that was told to end, and is still there, is told again."""
MISSES_TO_VANISH = 3
"""Consecutive answers without the pilot after which it counts as vanished."""

LOSS_WORDS = {
    PilotState.WALLTIME: AttemptOutcome.WALLTIME,
    PilotState.PREEMPTED: AttemptOutcome.PREEMPTED,
    PilotState.CANCELLED: AttemptOutcome.CANCELLED,
}
"""What the end of a pilot says of the attempts that ended with it; others are merely lost."""


class Pilot:
    """A request that was submitted, or is about to be."""

    def __init__(
        self,
        id: int,
        tag: str,
        request: Request,
        submitted: float,
        predicted_start: float | None,
        state: PilotState = PilotState.SUBMITTING,
        job: str | None = None,
        started: float | None = None,
        known_since: float | None = None,
        bag: int | None = None,
        node: str = "",
        partition: str = "",
    ) -> None:
        self.id = id
        self.tag = tag
        self.bag = bag
        """The only one that it serves; None: all that share their pilots."""
        self.node = node
        """Its donated node; empty: it is a formal request."""
        self.partition = partition
        """Of its site, by name; empty: the site has only one."""
        self.request = request
        """As it stands in the queue: its owner may alter it there by hand."""
        self.seen_running = started is not None
        """Whether the scheduler has said that it runs."""
        self.submitted = submitted
        """When the intent was written down, epoch seconds."""
        self.predicted_start = predicted_start
        self.state = state
        self.job = job
        """The scheduler's id; None while it is not known."""
        self.started = started
        self.granted: float = request.tr
        """Seconds that the scheduler gave it, which may be fewer than tr (shrink to fit)."""
        self.ended: float | None = None
        self.end_reason = ""
        self.yielded: float | None = None
        """Seconds from the call to make room until nothing of it ran."""
        self.known_since = submitted if known_since is None else known_since
        """When this daemon learned of it."""
        self.first_hello: float | None = None
        """When its first worker called."""
        self.worked = False
        """Whether a task was ever leased to it."""
        self.cancel_reason = ""
        """Why the adaptor wants it gone; empty: it does not."""
        self.cancel_sent: float | None = None
        """When the scheduler was last told to end it; None: never."""
        self.note = ""
        """What is wrong with it, for the user."""
        self.never = ""
        """Why the scheduler can never start it, in its words."""
        self.unheard: str | None = None
        """What workers that never reached the daemon left in its folder; None: nobody has looked yet."""
        self.wanted_since: float | None = None
        """Of a donated node: since when a local job has been seen to want it."""
        self.without_worker_since: float | None = None
        """Since when it has run without a worker that is heard of; None: it has one, or does not run."""
        self.fell_silent = False
        """Whether a worker of it was lost without a farewell: it may be heard of again."""
        self.shape: TaskShape | None = None
        """Of the tasks that it was made for; None: of a pilot that an earlier daemon made."""
        self.misses = 0
        """Answers in a row that left it out."""
        self.wait_known = started is not None
        """Whether its site has learned how long it waited."""

    @property
    def since(self) -> float:
        """When it started, or was submitted where it has not."""
        return self.submitted if self.started is None else self.started

    @property
    def asked(self) -> ShapeAt | None:
        """The shape of its tasks and its partition; None: the shape is not known."""
        return (self.shape, self.partition) if self.shape is not None else None

    @property
    def in_system(self) -> bool:
        return self.state.in_system

    def to_cancel(self, now: float) -> bool:
        """Whether to tell the scheduler to end it: it never was, or that order was lost."""
        sent = self.cancel_sent
        return bool(self.cancel_reason) and (sent is None or not 0 <= now - sent < CANCEL_AGAIN)

    def move(self, state: PilotState) -> None:
        """Raises ValueError: the table of transitions does not allow it."""
        if state not in PILOT_TRANSITIONS[self.state]:
            raise ValueError(f"pilot {self.id}: {self.state.value} does not become {state.value}")
        self.state = state

    def facts(self, processors: int | None, rooms: tuple[Room, ...] = ()) -> PilotFacts:
        """The pilot as a decision sees it; `processors`: those with workers, None: not known."""
        return PilotFacts(
            id=self.id,
            state=self.state,
            request=self.request,
            started=self.started,
            ends=self.started + self.granted if self.started is not None else None,
            processors=processors,
            submitted=self.submitted,
            predicted_start=self.predicted_start,
            bag=self.bag,
            node=self.node,
            granted=self.granted,
            leaving=self.cancel_reason,
            first_hello=self.first_hello,
            known_since=self.known_since,
            never=self.never,
            unheard=self.unheard,
            wanted_since=self.wanted_since,
            without_worker_since=self.without_worker_since,
            fell_silent=self.fell_silent,
            job=self.job,
            shape=self.shape,
            partition=self.partition,
            rooms=rooms,
        )

    def watch(self, now: float, *, heard: bool) -> None:
        """Take in whether a worker of it is known now."""
        if self.state is not PilotState.RUNNING or heard:
            self.without_worker_since, self.fell_silent = None, False
        elif self.without_worker_since is None:
            self.without_worker_since = now

    def hello(self, now: float) -> None:
        """A worker of it has called: it runs, whatever the scheduler has said so far."""
        self.note = ""
        if self.first_hello is None:
            self.first_hello = now
        if self.state in (PilotState.SUBMITTING, PilotState.QUEUED):
            self.move(PilotState.RUNNING)
            self.started = now if self.started is None else self.started

    def end(self, state: PilotState, at: float, reason: str) -> None:
        self.move(state)
        self.ended = at
        self.end_reason = reason


def observe(pilot: Pilot, report: JobReport, now: float) -> bool:
    """Take in the scheduler's word on a pilot in the system; whether anything has changed."""
    before = (pilot.state, pilot.job, pilot.started)
    pilot.misses = 0
    _take_request(pilot, report)
    pilot.job = report.id
    pilot.never = report.never
    if report.start is not None and report.state is not JobState.QUEUED:
        pilot.started = report.start
    if report.granted is not None:
        pilot.granted = report.granted
    if report.yielded is not None:
        pilot.yielded = report.yielded
    ended = report.state.ended
    if ended is not None:
        _end(pilot, report, ended, now)
    elif report.state is JobState.RUNNING and pilot.state is not PilotState.RUNNING:
        pilot.move(PilotState.RUNNING)
        pilot.started = now if pilot.started is None else pilot.started
    elif report.state is JobState.QUEUED and pilot.state is not PilotState.QUEUED:
        pilot.move(PilotState.QUEUED)
        pilot.started = pilot.first_hello = None
    return before != (pilot.state, pilot.job, pilot.started)


def _take_request(pilot: Pilot, report: JobReport) -> None:
    """Take in what it asks for now: its owner may alter the processors until it starts, and tr at any time.

    Pilots on donated nodes take the node as it is, and ask for less than tr where their queue does.
    """
    if report.request is None or pilot.node:
        return
    p = pilot.request.p if pilot.seen_running else report.request.p
    altered = Request(p, report.request.tr)
    if altered != pilot.request:
        pilot.request, pilot.granted = altered, altered.tr
    pilot.seen_running = report.state is not JobState.QUEUED


def _end(pilot: Pilot, report: JobReport, ended: PilotState, now: float) -> None:
    reason = pilot.cancel_reason or report.reason
    if ended is PilotState.PREEMPTED:
        reason = report.reason or ("a local job wanted its node" if pilot.node else reason)
    never_ran = report.start is None and pilot.started is None
    if ended is PilotState.CANCELLED and never_ran and pilot.cancel_reason:
        ended = PilotState.WITHDRAWN
    pilot.end(ended, report.end if report.end is not None else now, reason)


def miss(pilot: Pilot, now: float, *, alive: bool, settle_time: float) -> bool:
    """The scheduler's answer does not name a pilot in the system; whether that has ended it.

    Missing never means completed: a pilot whose submit is young may still appear, one whose workers
    are heard of runs, and any other has vanished only after several such answers.

    Args:
        alive: whether one of its workers was heard of lately.
        settle_time: seconds after which a submit that left no trace has not happened.
    """
    if pilot.state is PilotState.SUBMITTING:
        if now - pilot.submitted < settle_time:
            return False
        pilot.end(
            PilotState.REFUSED, now, "the submit command failed, and the scheduler never had the request"
        )
        return True
    pilot.misses = 0 if alive else pilot.misses + 1
    if pilot.misses < MISSES_TO_VANISH:
        return False
    pilot.end(
        PilotState.VANISHED, now, "the scheduler does not know it any more and has no record of its end"
    )
    return True
