"""Runtimes by kind of task, from earlier bags: read when another one begins."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.crafting.fits import most_memory
from adaptor.journal.bag_rows import requeued_work, unpack_task
from adaptor.kinds.earlier import KEPT, KindRecord, earlier_tasks, earlier_text, memory_needed, record_of
from adaptor.kinds.recognising import kind_of
from adaptor.model import AttemptOutcome, QueueState
from adaptor.option_kinds import AUTO
from adaptor.runtimes.known import EarlierTasks
from adaptor.units import format_size

MOST_RECORDS = 10_000
"""Most records of all kinds: some 5 MB. The oldest go first."""
GROWTH = 2.0  # `on-oom` of a bag with `mem=auto` that names none
_SAMPLE = 400  # ended tasks of a bag that are looked at, evenly over the order in which they ended

_unpack = msgspec.msgpack.Decoder(KindRecord).decode


class EarlierBags(msgspec.Struct, frozen=True, kw_only=True):
    """Knowledge of a new bag from earlier ones."""

    tasks: dict[str, EarlierTasks] = {}  # by site
    memory: int | None = None  # bytes that each task needs, with a margin; None: not known

    def settled(self, spec: BagSpec, queues: Iterable[QueueState | None]) -> BagSpec:
        """The bag with `mem=auto` replaced: by what its kinds need, as far as a node of these queues has it,
        or by nothing where that is not known. It grows by 2x then, unless it says otherwise."""
        if spec.memory != AUTO:
            return spec
        memory = self.memory
        if memory is not None:
            nodes = [most_memory(queue, spec.task) or 0 for queue in queues if queue]
            memory = min(memory, max(nodes, default=0) or memory)
        return msgspec.structs.replace(spec, memory=memory, on_oom=spec.on_oom or GROWTH)

    def texts(self, given: BagSpec, settled: BagSpec) -> list[str]:
        """The facts in words, for the user. `given`: the bag before it was settled."""
        told = list(dict.fromkeys(earlier_text(earlier) for earlier in self.tasks.values()))
        if given.memory == AUTO and isinstance(settled.memory, int):
            told.append(f"mem=auto: {format_size(settled.memory)} for each task, as earlier ones needed")
        elif given.memory == AUTO:
            told.append("mem=auto: no earlier task of its kind was measured, so no memory is asked for")
        return told


def earlier_bags(db: sqlite3.Connection, spec: BagSpec, sites: Collection[str]) -> EarlierBags:
    """Knowledge of a bag from earlier ones of its kinds. `sites`: those that remember."""
    if not sites or not spec.kinds:
        return EarlierBags()
    records = records_of(db, [kind.key for kind in spec.kinds], sites)
    known = {site: earlier_tasks(spec.kinds, records, site) for site in sites if spec.allows(site)}
    return EarlierBags(
        tasks={site: earlier for site, earlier in known.items() if earlier is not None},
        memory=memory_needed(spec.kinds, records),
    )


def records_of(
    db: sqlite3.Connection, keys: Iterable[str], sites: Collection[str]
) -> dict[str, dict[str, list[KindRecord]]]:
    """Records of the last bags by key of a kind and by site, the newest first."""
    found: dict[str, dict[str, list[KindRecord]]] = {}
    for key in keys:
        at = found[key] = defaultdict(list)
        rows = db.execute("SELECT site, record FROM kind WHERE key = ? ORDER BY at DESC, bag DESC", (key,))
        for site, packed in rows:
            if site in sites and len(at[site]) < KEPT:
                at[site].append(_unpack(packed))
    return found


def insert_records(db: sqlite3.Connection, bag: int, sites: Collection[str], now: float) -> None:
    """Write what a bag has shown at these sites so far; the caller has begun a transaction."""
    forget_records(db, bag)
    for (key, site), record in _records(db, bag, sites).items():
        row = (key, site, bag, now, msgspec.msgpack.encode(record))
        db.execute("INSERT INTO kind (key, site, bag, at, record) VALUES (?, ?, ?, ?, ?)", row)
        db.execute(
            "DELETE FROM kind WHERE key = ?1 AND site = ?2 AND bag IN (SELECT bag FROM kind"
            " WHERE key = ?1 AND site = ?2 ORDER BY at DESC, bag DESC LIMIT -1 OFFSET ?3)",
            (key, site, KEPT),
        )
    db.execute(
        "DELETE FROM kind WHERE at < (SELECT at FROM kind ORDER BY at DESC LIMIT 1 OFFSET ?)", (MOST_RECORDS,)
    )


def forget_records(db: sqlite3.Connection, bag: int) -> None:
    """Remove what a bag has shown; the caller has begun a transaction."""
    db.execute("DELETE FROM kind WHERE bag = ?", (bag,))


def forget_sites(db: sqlite3.Connection, sites: Iterable[str]) -> None:
    """Remove what all bags have shown at these sites; the caller has begun a transaction."""
    db.executemany("DELETE FROM kind WHERE site = ?", [(site,) for site in sites])


def _records(
    db: sqlite3.Connection, bag: int, sites: Collection[str]
) -> Mapping[tuple[str, str], KindRecord]:
    """Records by key of a kind and by site."""
    packed, last = db.execute("SELECT spec, events FROM bag WHERE id = ?", (bag,)).fetchone()
    spec = msgspec.msgpack.decode(packed, type=BagSpec)
    step = -(-last // _SAMPLE) or 1
    worked = requeued_work(db, bag) if spec.requeue_on else {}
    runtimes: dict[tuple[str, str], list[float]] = defaultdict(list)
    peaks: dict[tuple[str, str], list[int]] = defaultdict(list)
    for task, given, site, wall, peak in _results(db, bag, range(1, last + 1, step)):
        if site in sites:
            kind = kind_of(spec, unpack_task(given))[0], site
            runtimes[kind].append(wall + worked.get(task, 0.0))
            peaks[kind] += [peak] if peak else []
    return {kind: record_of(step * len(took), took, peaks[kind]) for kind, took in runtimes.items()}


def _results(
    db: sqlite3.Connection, bag: int, events: Sequence[int]
) -> Iterable[tuple[int, bytes, str, float, int | None]]:
    """Results of the tasks of these events that are done: number, packed input, site, runtime (seconds),
    peak.

    The query makes SQLite begin with the events: else it reads all attempts of the bag.
    """
    marks = ",".join("?" * len(events))
    return db.execute(
        "SELECT task.number, task.input, pilot.site, attempt.wall, attempt.peak_memory"  # noqa: S608
        " FROM task INDEXED BY task_by_event CROSS JOIN attempt ON attempt.bag = task.bag"
        " AND attempt.task = task.number AND attempt.number = task.result"
        " JOIN pilot ON pilot.id = attempt.pilot"
        f" WHERE task.bag = ? AND task.event IN ({marks}) AND attempt.outcome = ?"
        " AND attempt.wall IS NOT NULL",
        (bag, *events, AttemptOutcome.DONE.value),
    )
