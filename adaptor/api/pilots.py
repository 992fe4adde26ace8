"""Pilots, and why they were submitted or not."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from adaptor.api.question import KeyAccess, Question, Seconds, StateName, Time, WholeSeconds


class PilotRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what became of it: `adaptor status --pilots`, `adaptor report`."""

    id: int
    site: str
    job: str | None  # the scheduler's id
    state: StateName  # a word of `PilotState`
    p: int
    tr: WholeSeconds
    held: int | None = None
    """Processors that it has, or had, by the scheduler's own count; None: not known, p then."""
    bag: int | None = None  # the only one that it serves; None: all that share pilots
    array: int | None = None  # the first pilot of the array with which it was decided; None: it was alone
    node: str  # the donated node; empty: a formal request
    partition: str = ""  # in which it was submitted, by its name at the site; empty: the site has only one
    submitted: Time
    predicted_start: Time | None
    started: Time | None
    ended: Time | None
    reclaim_time: Seconds | None
    """Seconds until a donated node was free for a local job; None: no reclaim, or not known."""
    reason: str  # why it was issued
    end_reason: str  # why it was withdrawn, refused, or ended, where that is known
    used: Seconds  # processor-seconds of attempts that were recorded as a result
    running: Seconds = 0.0  # processor-seconds of attempts that run now, as far as a daemon knows them
    wasted: Seconds  # processor-seconds that it held without these
    workers: int  # workers connected now
    note: str  # news for the user, for instance that no worker has reached the daemon
    expected: Time | None = None
    """Expected start of a queued pilot; None: unknown, or it has started."""

    @property
    def holds(self) -> int:
        """Processors that it has, or asks for."""
        return self.p if self.held is None else self.held


class GetPilots(Question[list[PilotRecord]], frozen=True):
    kept = True
    nothing: ClassVar[list[PilotRecord]] = []

    ended: bool = False  # whether the ended ones are wanted too
    since: float = 0.0  # of the ended ones only those that ended at this time or later, epoch seconds


ExplanationKind = Literal[
    "issued",
    "divided",
    "withheld",
    "withdrawn",
    "reshaped",
    "refused",
    "ended",
    "state",
    "problem",
    "removed",
    "suspects",
    "paused",
    "memory",
    "needs",
    "earlier",
    "key",
]
"""Subject of a line of `adaptor why`."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `adaptor why`."""

    time: Time
    site: str
    subject: str  # `pilot 12`, `bag 3` or the site's name
    kind: ExplanationKind
    text: str  # one sentence with the numbers
    bags: list[int] = []  # bags that it concerns; empty: its pilot, or all of its site


class Why(msgspec.Struct, frozen=True):
    lines: list[Explanation]
    last: int = 0  # the number of the newest line
    offset: int = 0
    """Seconds by which the clock in its texts is ahead of UTC: they have the local time of their writer."""


class GetWhy(Question[Why], frozen=True):
    """Explanations: of a bag, of a pilot, or (neither given) the newest of all sites."""

    for_keys = KeyAccess.READ
    kept = True
    nothing = Why([])

    bag: int | None = None
    pilot: int | None = None
    limit: int = 20
    kinds: list[str] = msgspec.field(default_factory=list)  # of `ExplanationKind`; empty: all
    after: int = 0  # only decisions that were written after the one of this number
