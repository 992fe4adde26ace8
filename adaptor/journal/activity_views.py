"""Attempts in pilots and on donated nodes, and the ends of tasks: in sums, small for any bag."""

from __future__ import annotations

import functools
import math
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import msgspec

from adaptor import api
from adaptor.api import (
    AttemptSpan,
    AttemptUse,
    BusyTime,
    DonationView,
    DoneStep,
    FailureView,
    MeasuredView,
    RuntimeBin,
    TaskSums,
    Totals,
)
from adaptor.journal.bag_rows import spec_of, unpack_task
from adaptor.journal.pilot_rows import held_by_attempts
from adaptor.journal.views import ScriptOutputs, bags
from adaptor.model import AttemptOutcome, PilotState, TaskState

_USES: dict[str, AttemptUse] = {
    AttemptOutcome.DONE.value: "result",
    AttemptOutcome.REQUEUED.value: "result",
    AttemptOutcome.FAILED.value: "failed",
    AttemptOutcome.TIMED_OUT.value: "failed",
    AttemptOutcome.OUT_OF_MEMORY.value: "failed",
    AttemptOutcome.SUPERSEDED.value: "replica",
    AttemptOutcome.CANCELLED.value: "cancelled",
}
"""All other outcomes are cuts."""
_MOST_PILOTS = 500
_RUNTIME_BINS = 32
_PROGRESS_STEPS = 120
_MOST_ENDINGS = 10


def activity(db: sqlite3.Connection, question: api.GetActivity) -> api.Activity:
    """The attempts in the newest of these pilots that were started and have ended."""
    pilots = sorted(question.pilots)[-_MOST_PILOTS:]
    where = f"pilot IN ({','.join('?' * len(pilots))}) AND started IS NOT NULL AND ended IS NOT NULL"

    @functools.cache
    def usual(bag: int) -> int:
        return spec_of(db, bag).task.total_processors

    (count,) = db.execute(f"SELECT COUNT(*) FROM attempt WHERE {where}", pilots).fetchone()  # noqa: S608
    if count > question.most:
        busy = [each for pilot in pilots for each in _busy(db, pilot, question.bins, usual)]
        return api.Activity([], busy)
    rows = db.execute(
        "SELECT pilot, bag, task, processors, started, ended, outcome FROM attempt"  # noqa: S608
        f" WHERE {where} ORDER BY pilot, started",
        pilots,
    )
    spans = [
        AttemptSpan(pilot, bag, task, usual(bag) if own is None else own, started, ended, _use(outcome))
        for pilot, bag, task, own, started, ended, outcome in rows
    ]
    return api.Activity(spans, [])


def _use(outcome: str) -> AttemptUse:
    return _USES.get(outcome, "cut")


def _busy(db: sqlite3.Connection, pilot: int, bins: int, usual: Callable[[int], int]) -> Iterator[BusyTime]:
    """The mean number of processors in use in each of `bins` equal parts of a pilot's time.

    The processor-seconds until an instant t are the sum of t - started over all attempts that were started
    by then, less the sum of t - ended over those that had ended. So counts and sums by part suffice, which
    SQLite makes; no attempt is looked at by itself.
    """
    where = "pilot = ? AND started IS NOT NULL AND ended IS NOT NULL"
    first, last = db.execute(
        f"SELECT MIN(started), MAX(ended) FROM attempt WHERE {where}",  # noqa: S608
        (pilot,),
    ).fetchone()
    if first is None:
        return
    width = max(1e-3, (last - first) / bins)
    changes: dict[AttemptUse, list[tuple[float, float]]] = defaultdict(lambda: [(0.0, 0.0)] * bins)
    for field, sign in (("started", 1), ("ended", -1)):
        rows = db.execute(
            f"SELECT bag, processors, outcome, MIN(?, CAST(({field} - ?) / ? AS INT)) AS part,"  # noqa: S608
            f" COUNT(*), SUM({field} - ?) FROM attempt WHERE {where} GROUP BY bag, processors, outcome, part",
            (bins - 1, first, width, first, pilot),
        )
        for bag, own, outcome, part, count, total in rows:
            size = usual(bag) if own is None else own
            weight, parts = sign * size, changes[_use(outcome)]
            counted, summed = parts[max(0, part)]
            parts[max(0, part)] = (counted + weight * count, summed + weight * total)
    for use, parts in sorted(changes.items()):
        held = [round(seconds / width, 2) for seconds in _held(parts, width)]
        yield BusyTime(pilot, use, first, width, held)


def _held(parts: Sequence[tuple[float, float]], width: float) -> Iterator[float]:
    """Processor-seconds in each part."""
    counted = summed = before = 0.0
    for number, (count, total) in enumerate(parts, 1):
        counted, summed = counted + count, summed + total
        until = number * width * counted - summed
        yield max(0.0, until - before)
        before = until


def task_sums(db: sqlite3.Connection, bag_id: int) -> TaskSums:
    """Sums over the attempts of a bag. Raises UnknownBagError."""
    (bag,) = bags(db, str(bag_id))
    runtimes = db.execute(
        "SELECT wall FROM attempt WHERE bag = ? AND outcome = ? AND wall IS NOT NULL",
        (bag_id, AttemptOutcome.DONE.value),
    )
    failures = _failures(db, bag_id)
    return TaskSums(
        bag=bag_id,
        runtimes=histogram([wall for (wall,) in runtimes]),
        progress=_progress(db, bag_id, bag.submitted),
        failures=failures,
        other_failures=bag.failed - sum(failure.count for failure in failures),
    )


def histogram(runtimes: Sequence[float], most: int = _RUNTIME_BINS) -> list[RuntimeBin]:
    """The runtimes in at most `most` bins: of equal width, or of equal ratio if they span more than a factor
    of 30."""
    if not runtimes:
        return []
    low, high = max(1e-3, min(runtimes)), max(1e-3, *runtimes)
    bins = min(most, max(1, math.ceil(2 * len(runtimes) ** (1 / 2))))
    if high <= low * (1 + 1e-9):
        return [RuntimeBin(low, high, len(runtimes))]
    ratio = high > 30 * low
    begin, span = (math.log(low), math.log(high / low)) if ratio else (low, high - low)
    counts = [0] * bins
    for runtime in runtimes:
        at = math.log(max(low, runtime)) if ratio else runtime
        counts[min(bins - 1, max(0, int(bins * (at - begin) / span)))] += 1
    edges = [begin + span * number / bins for number in range(bins + 1)]
    if ratio:
        edges = [math.exp(edge) for edge in edges]
    return [RuntimeBin(edges[number], edges[number + 1], count) for number, count in enumerate(counts)]


def _progress(db: sqlite3.Connection, bag: int, submitted: float) -> list[DoneStep]:
    """Tasks with a result over time, from the submission on."""
    done = AttemptOutcome.DONE.value
    (last,) = db.execute(
        "SELECT MAX(ended) FROM attempt WHERE bag = ? AND outcome = ?", (bag, done)
    ).fetchone()
    if last is None:
        return []
    width = max(1e-3, (last - submitted) / _PROGRESS_STEPS)
    rows = db.execute(
        "SELECT CAST((ended - ?) / ? AS INT) AS part, COUNT(*) FROM attempt"
        " WHERE bag = ? AND outcome = ? AND ended IS NOT NULL GROUP BY part ORDER BY part",
        (submitted, width, bag, done),
    )
    steps, total = [DoneStep(submitted, 0)], 0
    for part, count in rows:
        total += count
        steps.append(DoneStep(min(last, submitted + (part + 1) * width), total))
    return steps


def _failures(db: sqlite3.Connection, bag: int) -> list[FailureView]:
    """The most frequent endings of failed tasks. The columns besides MAX are those of the newest task."""
    rows = db.execute(
        "SELECT a.exit_code, a.signal, COALESCE(t.error, a.error) AS why, COUNT(*), t.number,"
        " COALESCE(a.number, 0), MAX(a.ended), a.node, t.input"
        " FROM task t LEFT JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
        " AND a.number = COALESCE(t.result, t.attempts)"
        " WHERE t.bag = ? AND t.state = ?"
        " GROUP BY a.exit_code, a.signal, why ORDER BY COUNT(*) DESC, t.number LIMIT ?",
        (bag, TaskState.FAILED.value, _MOST_ENDINGS),
    )
    outputs = ScriptOutputs(db, bag)
    found = []
    for code, signal, error, count, task, attempt, ended, node, packed in rows:
        own = unpack_task(packed).environment
        found.append(
            FailureView(
                exit_code=code, signal=signal, error=error, count=count, task=task, attempt=attempt,
                ended=ended, node=node, stderr=outputs.of(task, own, node)[1],
            )
        )  # fmt: skip
    return found


def jobs_of_site(db: sqlite3.Connection, site: str, since: float, partition: str = "") -> dict[str, int]:
    """Pilots of this site by the scheduler's id of their job, except those that ended before `since`.

    `partition`: only of this one; empty: of all.
    """
    rows = db.execute(
        "SELECT job, id FROM pilot WHERE site = ? AND job IS NOT NULL AND (ended IS NULL OR ended >= ?)"
        " AND ? IN ('', partition)",
        (site, since, partition),
    )
    return dict(rows.fetchall())


def measured(db: sqlite3.Connection, bag: int, totals: Totals) -> MeasuredView:
    """Measurements of the attempts that became results, except those of tasks with needs of their own.

    Raises UsageError: there is no such bag.
    """
    spec = spec_of(db, bag)
    done, wall, longest, cpu, memory = db.execute(
        "SELECT COUNT(*), TOTAL(wall), MAX(wall), TOTAL(cpu), MAX(peak_memory) FROM attempt JOIN task"
        " ON task.bag = attempt.bag AND task.number = attempt.task"
        " WHERE attempt.bag = ? AND outcome = ? AND wall IS NOT NULL AND needs IS NULL AND memory IS NULL",
        (bag, AttemptOutcome.DONE.value),
    ).fetchone()
    mixed = db.execute("SELECT 1 FROM task WHERE bag = ? AND needs IS NOT NULL LIMIT 1", (bag,)).fetchone()
    first_request = (
        "SELECT tr FROM pilot WHERE donated_node = '' AND id IN"
        " (SELECT DISTINCT pilot FROM attempt WHERE bag = ?) ORDER BY id LIMIT 1"
    )
    first = None if mixed else db.execute(first_request, (bag,)).fetchone()
    return MeasuredView(
        task=spec.task,
        sites=list(spec.sites),
        done=done,
        wall=wall,
        longest=longest or 0.0,
        cpu=cpu,
        memory=memory or 0,
        first_tr=float(first[0]) if first else None,
        paid=totals.paid - totals.running,
        used=totals.used + totals.used_by_others,
    )


NOTHING_DONATED = DonationView(
    nodes=0, donations=0, held=0.0, used=0.0, lost=0.0, reclaims=0, latency=None, slowest=None
)
_LOST = (AttemptOutcome.PREEMPTED, AttemptOutcome.LOST)


def donation_of_site(db: sqlite3.Connection, site: str, now: float) -> DonationView | None:
    """All donated nodes that a site has used, those in use included; None: it never used one."""
    rows = db.execute(
        "SELECT id, state, reclaim_time, COALESCE(held, p) * MAX(0, COALESCE(ended, ?) - started) FROM pilot"
        " WHERE site = ? AND donated_node <> ''",
        (now, site),
    ).fetchall()
    uses = [_Use(*row) for row in rows]
    if not uses:
        return None
    held = _attempts(db, "pilot.site = ?", (site,))
    return _view(uses, sum(use.held or 0.0 for use in uses), *held)


def donation_of_bag(db: sqlite3.Connection, bag: int) -> DonationView | None:
    """The use of donated nodes by the tasks of a bag; None: none ever ran there."""
    rows = db.execute(
        "SELECT id, state, reclaim_time, 0 FROM pilot WHERE donated_node <> ''"
        " AND id IN (SELECT DISTINCT pilot FROM attempt WHERE bag = ?)",
        (bag,),
    ).fetchall()
    if not rows:
        return None
    used, lost = _attempts(db, "attempt.bag = ?", (bag,))
    return _view([_Use(*row) for row in rows], used + lost, used, lost)


class _Use(msgspec.Struct, frozen=True):
    """A pilot that uses a donated node, or has."""

    id: int
    state: str
    reclaim_time: float | None  # seconds; None: its node was not reclaimed, or it is not known
    held: float | None  # processor-seconds


def _view(uses: Sequence[_Use], held: float, used: float, lost: float) -> DonationView:
    reclaimed = [use for use in uses if use.state == PilotState.PREEMPTED.value]
    times = [use.reclaim_time for use in reclaimed if use.reclaim_time is not None]
    return DonationView(
        nodes=sum(use.state == PilotState.RUNNING.value for use in uses),
        donations=len(uses),
        held=held,
        used=used,
        lost=lost,
        reclaims=len(reclaimed),
        latency=statistics.median(times) if times else None,
        slowest=max(times, default=None),
    )


def _attempts(db: sqlite3.Connection, where: str, arguments: tuple[object, ...]) -> tuple[float, float]:
    """Processor-seconds of attempts on donated nodes: those that became results, and those that were lost."""
    used = lost = 0.0
    for held in held_by_attempts(db, f"pilot.donated_node <> '' AND {where}", arguments):
        if held.outcome.useful:
            used += held.seconds
        elif held.outcome in _LOST:
            lost += held.seconds
    return used, lost
