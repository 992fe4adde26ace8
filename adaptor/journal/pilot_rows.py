"""Pilots as rows of the journal: the intent to submit, how each fared, and what attempts held of it.

In addition local jobs: which shares of their limits they ran, with salted hashes in place of users.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.cost_shares import Use
from adaptor.crafting.futures.run_shares import KEPT, Ran
from adaptor.journal.database import select
from adaptor.model import IN_SYSTEM, REPORTED, AttemptOutcome, CraftedRequest, PilotState
from adaptor.protocol.messages import AttemptKey

_TIMED = (*REPORTED, AttemptOutcome.WALLTIME)  # ends of attempts whose times the worker itself has reported


WAITS = 500  # the last waits of a site's pilots, from which waiting times are learned


class PilotRow(msgspec.Struct, frozen=True):
    """A pilot in the system."""

    id: int
    site: str
    tag: str
    job: str | None
    state: str
    p: int
    tr: int
    least: int | None  # seconds with which the scheduler may start it; None: tr
    submitted: float
    predicted_start: float | None
    started: float | None
    bag: int | None  # the only bag that it serves; None: all that share their pilots
    node: str  # the donated node that it uses; empty: it is a formal request
    partition: str  # of the site, by name; empty: it has only one
    array: int | None  # the first pilot of the array with which it was submitted; None: it was alone
    held: int | None  # processors that it has by the scheduler's own count; None: not told


class PilotWait(msgspec.Struct, frozen=True):
    """Planned start of a pilot, and its real start, or the time when it was given up; epoch seconds."""

    p: int
    predicted_start: float
    started: float | None
    ended: float | None
    submitted: float
    tr: int  # seconds


class EndedPilot(msgspec.Struct, frozen=True):
    """A pilot that is not in the system any more."""

    started: float | None  # epoch seconds; None: it never ran
    ended: float


class HeldSeconds(msgspec.Struct, frozen=True):
    """Processor time of a pilot in the attempts of one bag with one kind of end."""

    pilot: int
    bag: int
    outcome: AttemptOutcome
    seconds: float  # processor-seconds


def insert_pilot(
    db: sqlite3.Connection,
    site: str,
    tag_prefix: str,
    crafted: CraftedRequest,
    now: float,
    bag: int | None,
    node: str,
) -> int:
    """Write the intent to submit a request; the pilot's id. As `Journal.add_pilots`."""
    request, start = crafted.request, crafted.predicted_start
    row = db.execute(
        "INSERT INTO pilot (site, tag, state, p, tr, least, submitted, predicted_start, reason, bag,"
        " donated_node, partition) VALUES (?, '', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(site, PilotState.SUBMITTING.value, request.p, request.tr, request.least, now, start),
            *(crafted.reason, bag, node, crafted.partition),
        ),
    )
    pilot = int(row.lastrowid or 0)
    db.execute("UPDATE pilot SET tag = ? WHERE id = ?", (f"{tag_prefix}{pilot}", pilot))
    return pilot


def pilots_in_system(db: sqlite3.Connection) -> list[PilotRow]:
    """Pilots that count towards max_pending_requests."""
    states = [state.value for state in IN_SYSTEM]
    where = f"pilot WHERE state IN ({','.join('?' * len(states))})"
    return select(db, PilotRow, where, states, named={"node": "donated_node"})


def arrays_of(db: sqlite3.Connection, pilots: Iterable[int]) -> dict[int, int]:
    """First pilot of the array of each pilot; pilots without an array are left out."""
    found: dict[int, int] = {}
    for pilot in pilots:
        row = db.execute("SELECT array FROM pilot WHERE id = ?", (pilot,)).fetchone()
        if row is not None and row[0] is not None:
            found[pilot] = row[0]
    return found


def pilot_waits(db: sqlite3.Connection, site: str, limit: int = WAITS) -> list[PilotWait]:
    """The last pilots of a site that started, or ended, after a prediction; the oldest first."""
    found = select(
        db,
        PilotWait,
        "pilot WHERE site = ? AND predicted_start IS NOT NULL AND state <> ?"
        " AND (started IS NOT NULL OR ended IS NOT NULL) ORDER BY id DESC LIMIT ?",
        (site, PilotState.REFUSED.value, limit),
    )
    return found[::-1]


def submitted_since(db: sqlite3.Connection, site: str, since: float) -> list[float]:
    """Epoch seconds at which requests of a site were sent, without those withdrawn before they started; those
    of an array were sent together."""
    rows = db.execute(
        "SELECT MIN(submitted) FROM pilot WHERE site = ? AND donated_node = '' AND submitted > ?"
        " AND state <> ? GROUP BY COALESCE(array, id)",
        (site, since, PilotState.WITHDRAWN.value),
    )
    return [float(at) for (at,) in rows]


def withdrawn_since(db: sqlite3.Connection, site: str, since: float) -> list[float]:
    """Epoch seconds at which requests of a site were withdrawn from its queue."""
    rows = db.execute(
        "SELECT ended FROM pilot WHERE site = ? AND donated_node = '' AND state = ? AND ended > ?",
        (site, PilotState.WITHDRAWN.value, since),
    )
    return [float(at) for (at,) in rows]


def ended_pilots(db: sqlite3.Connection, pilots: Iterable[int]) -> dict[int, EndedPilot]:
    """The pilots among these that have ended.

    The times are the scheduler's. Where it has lost its record of a pilot, the pilot's end is the last end
    of an attempt that a worker has reported.
    """
    found, marks = {}, ",".join("?" * len(_TIMED))
    for pilot in pilots:
        state, started, ended, submitted = db.execute(
            "SELECT state, started, ended, submitted FROM pilot WHERE id = ?", (pilot,)
        ).fetchone()
        if PilotState(state) in IN_SYSTEM:
            continue
        first, last = db.execute(
            f"SELECT MIN(started), MAX(ended) FROM attempt WHERE pilot = ? AND outcome IN ({marks})",  # noqa: S608
            (pilot, *(outcome.value for outcome in _TIMED)),
        ).fetchone()
        if state == PilotState.VANISHED.value and last is not None:
            ended = last
        found[pilot] = EndedPilot(
            first if started is None else started, ended if ended is not None else submitted
        )
    return found


def signs_of_life(db: sqlite3.Connection, pilot: int) -> tuple[float | None, float | None]:
    """The first start and the last end of a pilot's attempts, however they ended; no end while one runs."""
    first, last, running = db.execute(
        "SELECT MIN(started), MAX(ended), SUM(outcome IS NULL) FROM attempt"
        " WHERE pilot = ? AND started IS NOT NULL",
        (pilot,),
    ).fetchone()
    return first, None if running else last


def write_off(
    db: sqlite3.Connection, pilot: int, started: float | None, ended: float, end_reason: str
) -> None:
    """End a pilot of which nothing more will be heard."""
    db.execute(
        "UPDATE pilot SET state = ?, started = ?, ended = ?, end_reason = ? WHERE id = ?",
        (PilotState.VANISHED.value, started, ended, end_reason, pilot),
    )


def started_in(db: sqlite3.Connection, keys: Iterable[AttemptKey]) -> dict[tuple[int, str], list[AttemptKey]]:
    """The attempts by the pilot in which they were started, and its site; unknown ones are left out."""
    found: dict[tuple[int, str], list[AttemptKey]] = {}
    for key in keys:
        row = db.execute(
            "SELECT pilot.id, pilot.site FROM attempt JOIN pilot ON pilot.id = attempt.pilot"
            " WHERE attempt.bag = ? AND attempt.task = ? AND attempt.number = ?",
            (key.bag, key.task, key.attempt),
        ).fetchone()
        if row is not None:
            found.setdefault(row, []).append(key)
    return found


def held_by_attempts(
    db: sqlite3.Connection, where: str, arguments: Sequence[object]
) -> Iterator[HeldSeconds]:
    """Processor-seconds of attempts that were started and have ended, by pilot, bag and outcome.

    `where` is an SQL condition on `attempt` and `pilot`, and never comes from a user.
    """
    rows = db.execute(
        "SELECT attempt.pilot, attempt.bag, bag.spec, attempt.outcome, attempt.processors,"  # noqa: S608
        " SUM(COALESCE(attempt.wall, MAX(0, attempt.ended - attempt.started)))"
        " FROM attempt JOIN pilot ON pilot.id = attempt.pilot JOIN bag ON bag.id = attempt.bag"
        f" WHERE attempt.started IS NOT NULL AND attempt.outcome IS NOT NULL AND {where}"
        " GROUP BY attempt.pilot, attempt.bag, attempt.outcome, attempt.processors",
        arguments,
    )
    processors: dict[int, int] = {}
    for pilot, bag, spec, outcome, own, seconds in rows:
        if bag not in processors:
            processors[bag] = msgspec.msgpack.decode(spec, type=BagSpec).task.total_processors
        held = (seconds or 0.0) * (processors[bag] if own is None else own)
        yield HeldSeconds(pilot, bag, AttemptOutcome(outcome), held)


def uses_of(db: sqlite3.Connection, pilot: int) -> dict[int, Use]:
    """Processor-seconds of a pilot in the attempts of each bag."""
    uses: dict[int, Use] = {}
    for held in held_by_attempts(db, "attempt.pilot = ?", (pilot,)):
        known = uses.get(held.bag, Use())
        field = "useful" if held.outcome.useful else "wasted"
        uses[held.bag] = msgspec.structs.replace(known, **{field: getattr(known, field) + held.seconds})
    return uses


def local_runs(db: sqlite3.Connection, site: str) -> list[Ran]:
    """The newest local jobs of a site that were seen to end, the oldest first."""
    newest = "local_run WHERE site = ? ORDER BY id DESC LIMIT ?"
    return select(db, Ran, newest, (site, KEPT), named={"limit": "run_limit"})[::-1]
