"""The journal, which only the daemon writes: what was acknowledged survives `kill -9` of anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import msgspec

from adaptor.api import ExplanationKind, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.crafting.futures.run_shares import KEPT, Ran
from adaptor.donation.idleness import Idleness
from adaptor.errors import JournalError
from adaptor.forecast.calibration import Raw
from adaptor.forecast.kept_starts import KeptStarts
from adaptor.forecast.record import FirstForecast
from adaptor.journal import bag_rows, database
from adaptor.journal.change_rows import note_user_change, write_changes
from adaptor.journal.decision_rows import delete_decisions, insert_decision
from adaptor.journal.forecast_rows import insert_forecast, insert_raw
from adaptor.journal.own_files import GoneJournalError, OwnFiles, copy_beside, write_copy
from adaptor.journal.pilot_rows import insert_pilot
from adaptor.model import AttemptOutcome, CraftedRequest, PilotState, Request, UserChange
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.changes import Changes

_pack = msgspec.msgpack.Encoder().encode
P = ParamSpec("P")
R = TypeVar("R")
_Also = Callable[[sqlite3.Connection, int], None]


class Journal:
    def __init__(self, directory: Path) -> None:
        """Raises JournalError: the file cannot be opened, or not be migrated to the present format."""
        self.path = directory / database.FILE
        self.connection: sqlite3.Connection = database.open_for_writing(directory)
        self._files = OwnFiles(self.path, self.connection)
        self._synced = 0  # of the rows that this connection has changed, those that `sync` was called for

    @property
    def instance(self) -> str:
        """The name of this journal in the tags of its pilots; it never changes."""
        with database.guarded(self.path):
            return f"{self.connection.execute('PRAGMA application_id').fetchone()[0]:08x}"

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Write all that the block writes, or nothing.

        Raises JournalError: nothing is written, or what is written is not kept, as `check_files` says.

        Within the block of another transaction it is a part of that one.

        `durable`: it outlives the machine from the end of the block on; others do after the next `sync`.
        """
        with database.guarded(self.path):
            if self.connection.in_transaction:
                yield self.connection
                return
            if durable:
                database.set_synchronous(self.connection, database.DURABLE)
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                yield self.connection
                self.connection.execute("COMMIT")
                self._files.check(self.connection)
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
            finally:
                if durable:
                    database.set_synchronous(self.connection, database.SOON)

    def check_files(self) -> None:
        """Raises JournalError: the journal is not in its place, or that cannot be seen."""
        with database.guarded(self.path):
            self._files.check(self.connection)

    def put_back(self) -> bool:
        """Write a removed journal again, with all that was ever written into it; returns whether it was
        removed.

        Raises JournalError: the journal cannot be written, or `check_files` raises it.
        """
        try:
            self.check_files()
            return False
        except GoneJournalError:
            pass
        with database.guarded(self.path):
            try:
                write_copy(self.connection, self.path)
            except OSError as error:
                raise JournalError(f"{self.path}: cannot be written again: {error.strerror}") from error
            self.connection.close()
            self._remove_log()
            self.connection = database.open_for_writing(self.path.parent)
            self._files = OwnFiles(self.path, self.connection)
        return True

    def keep_copy(self, now: float) -> Path:
        """Keep what this daemon has written next to a file in the journal's place. Raises JournalError."""
        with database.guarded(self.path):
            try:
                copy = copy_beside(self.connection, self.path, now)
            except OSError as error:
                raise JournalError(f"{self.path}: no copy can be kept: {error.strerror}") from error
        self._remove_log()
        return copy

    def _remove_log(self) -> None:
        """Remove the log of a journal that is in a copy now. Raises JournalError."""
        try:
            self._files.remove_log()
        except OSError as error:
            raise JournalError(f"{self.path}-wal: cannot be removed: {error.strerror}") from error

    def is_to_sync(self) -> bool:
        """True if something was written since the last call."""
        before, self._synced = self._synced, self.connection.total_changes
        return self._synced != before

    def sync(self) -> None:
        """Bring what was written to the disk; in any thread. Raises JournalError."""
        database.sync(self.path)

    def read(
        self, query: Callable[Concatenate[sqlite3.Connection, P], R], *of: P.args, **named: P.kwargs
    ) -> R:
        """The result of a function that reads the journal. Raises JournalError."""
        with database.guarded(self.path):
            return query(self.connection, *of, **named)

    # --- bags ----------------------------------------------------------------------------------

    def bag_spec(self, bag: int) -> BagSpec:
        """Options of a bag. Raises UnknownBagError."""
        return self.read(bag_rows.spec_of, bag)

    def inputs(self, keys: Sequence[AttemptKey]) -> list[TaskInput]:
        """The commands of these tasks, in the same order."""
        found: dict[tuple[int, int], bytes] = {}
        with database.guarded(self.path):
            for bag in {key.bag for key in keys}:
                numbers = [key.task for key in keys if key.bag == bag]
                marks = ",".join("?" * len(numbers))
                rows = self.connection.execute(
                    f"SELECT number, input FROM task WHERE bag = ? AND number IN ({marks})",  # noqa: S608
                    (bag, *numbers),
                )
                found.update(((bag, number), packed) for number, packed in rows)
        return [bag_rows.unpack_task(found[key.bag, key.task]) for key in keys]

    def write(self, changes: Changes, now: float, *also: Callable[[sqlite3.Connection], None] | None) -> None:
        """Write one step of the broker. Raises JournalError: nothing is written.

        `also` are called at the end of the same transaction; None is left out.
        """
        if not changes:
            return
        with self.transaction() as db:
            write_changes(db, changes, now)
            for each in also:
                if each is not None:
                    each(db)

    # --- pilots --------------------------------------------------------------------------------

    def add_pilots(
        self,
        site: str,
        tag_prefix: str,
        crafted: Sequence[CraftedRequest],
        now: float,
        bag: int | None = None,
        holds: Callable[[sqlite3.Connection, int], bool] = lambda _db, _pilot: True,
        node: str = "",
    ) -> range:
        """Write the intent to submit requests together, before they are submitted; the pilots' ids.

        Args:
            bag: the only one that they will serve.
            holds: gets an id and writes in the same transaction; False: neither this pilot is written nor
                those behind it.
            node: the donated node that the only one will use.
        """
        written: list[int] = []
        with self.transaction(durable=True) as db:
            for each in crafted:
                pilot = insert_pilot(db, site, tag_prefix, each, now, bag, node)
                if not holds(db, pilot):
                    db.execute("DELETE FROM pilot WHERE id = ?", (pilot,))
                    break
                written.append(pilot)
            if len(written) > 1:
                db.execute(
                    "UPDATE pilot SET array = ?1 WHERE id BETWEEN ?1 AND ?2", (written[0], written[-1])
                )
        return range(written[0], written[-1] + 1) if written else range(0)

    def update_pilot(
        self,
        pilot: int,
        *,
        state: PilotState,
        job: str | None,
        started: float | None,
        ended: float | None,
        end_reason: str,
        yielded: float | None = None,
        held: int | None = None,
    ) -> None:
        """Write the state of a pilot down. `held`: processors that it has by the scheduler's own count."""
        with self.transaction() as db:
            db.execute(
                "UPDATE pilot SET state = ?, job = ?, started = ?, ended = ?, end_reason = ?,"
                " reclaim_time = ?, held = ? WHERE id = ?",
                (state.value, job, started, ended, end_reason, yielded, held, pilot),
            )

    def change_request(
        self, pilot: int, request: Request, predicted_start: float | None, reason: str | None, also: _Also
    ) -> None:
        """Write the present request of a queued pilot; `also` writes in the same transaction. `reason` None:
        as before."""
        with self.transaction() as db:
            db.execute(
                "UPDATE pilot SET p = ?, tr = ?, least = ?, predicted_start = ?, reason = COALESCE(?, reason)"
                " WHERE id = ?",
                (request.p, request.tr, request.least, predicted_start, reason, pilot),
            )
            also(db, pilot)

    def idleness(self, site: str) -> Idleness | None:
        """Knowledge of the idle periods of a site's nodes; None: nothing is known."""
        with database.guarded(self.path):
            row = self.connection.execute("SELECT known FROM idleness WHERE site = ?", (site,)).fetchone()
        return None if row is None else msgspec.msgpack.decode(row[0], type=Idleness)

    def keep_idleness(self, site: str, known: Idleness) -> None:
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO idleness (site, known) VALUES (?, ?)", (site, _pack(known)))

    def starts_seen(self, site: str) -> KeptStarts:
        """The forecasts of starts that were judged at a site, and past waits. Raises JournalError."""
        with database.guarded(self.path):
            row = self.connection.execute("SELECT judged FROM starts_seen WHERE site = ?", (site,)).fetchone()
        return KeptStarts() if row is None else msgspec.msgpack.decode(row[0], type=KeptStarts)

    def keep_starts_seen(self, site: str, kept: KeptStarts) -> None:
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO starts_seen (site, judged) VALUES (?, ?)", (site, _pack(kept)))

    def tried_sizes(self, site: str) -> bytes | None:
        """Tried sizes as `keep_tried_sizes` got them; None: none are kept. Raises JournalError."""
        with database.guarded(self.path):
            row = self.connection.execute("SELECT tried FROM tried_sizes WHERE site = ?", (site,)).fetchone()
        return None if row is None else bytes(row[0])

    def keep_tried_sizes(self, site: str, tried: bytes) -> None:
        """Keep which sizes of requests the scheduler of a site did not take, as msgpack."""
        with self.transaction() as db:
            db.execute("INSERT OR REPLACE INTO tried_sizes (site, tried) VALUES (?, ?)", (site, tried))

    def keep_local_runs(self, site: str, runs: Iterable[Ran]) -> None:
        """Keep what local jobs of a site ran of their limits: the newest `KEPT`."""
        with self.transaction() as db:
            db.executemany(
                "INSERT INTO local_run (site, owner, run_limit, share) VALUES (?, ?, ?, ?)",
                [(site, each.owner, each.limit, round(each.share, 4)) for each in runs],
            )
            db.execute(
                "DELETE FROM local_run WHERE site = ?1 AND id <="
                " (SELECT id FROM local_run WHERE site = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                (site, KEPT),
            )

    def note_freed(
        self,
        pilot: int,
        processors: int,
        at: float,
        also: Callable[[sqlite3.Connection], None] = lambda _db: None,
    ) -> None:
        """Record that a pilot has given processors back at this time.

        `also`: writes more in the same transaction.
        """
        with self.transaction() as db:
            db.execute(
                "UPDATE pilot SET freed = freed + ?, freed_at_sum = freed_at_sum + ? WHERE id = ?",
                (processors, processors * at, pilot),
            )
            also(db)

    def name_losses(self, pilot: int, outcome: AttemptOutcome) -> None:
        """Give the lost attempts of a pilot the scheduler's word for how it ended.

        Suspects stay lost: their workers had died before.
        """
        with self.transaction() as db:
            db.execute(
                "UPDATE attempt SET outcome = ? WHERE pilot = ? AND outcome = ? AND NOT suspect",
                (outcome.value, pilot, AttemptOutcome.LOST.value),
            )

    # --- forecasts -----------------------------------------------------------------------------

    def keep_forecast(self, bag: int, first: FirstForecast | None, raw: Raw | None = None) -> None:
        """Keep the first forecast of a bag, and what was simulated; what is kept already stays."""
        with self.transaction() as db:
            if first is not None:
                insert_forecast(db, bag, first)
            if raw is not None:
                insert_raw(db, bag, raw)

    def note_user_change_of_all(self, change: UserChange, now: float) -> None:
        """Write down that the user changed all bags that have not ended."""
        with self.transaction() as db:
            for (bag,) in db.execute("SELECT id FROM bag WHERE ended IS NULL").fetchall():
                note_user_change(db, bag, change, now)

    # --- decisions -----------------------------------------------------------------------------

    def explain(
        self,
        time: float,
        site: str,
        kind: ExplanationKind,
        text: str,
        *,
        pilot: int | None = None,
        bags: Collection[int] = (),
        replacing: int | None = None,
    ) -> int:
        """Keep a decision with its reason for `adaptor why`; the row, which a later decision may replace.

        `bags`: that it is about; empty: its pilot, or all of its site.
        """
        with self.transaction() as db:
            if replacing is not None:
                delete_decisions(db, replacing, replacing)
            return insert_decision(db, time, site, kind, text, pilot=pilot, bags=bags)

    def note_clock_set(self, time: float, text: str) -> None:
        """Tell it, and drop the predicted starts of pilots that wait: those were times of another clock."""
        with self.transaction() as db:
            insert_decision(db, time, "", "problem", text)
            db.execute(
                "UPDATE pilot SET predicted_start = NULL WHERE started IS NULL AND state IN (?, ?)",
                (PilotState.SUBMITTING.value, PilotState.QUEUED.value),
            )

    def explained(self, kind: ExplanationKind) -> dict[int, float]:
        """Time of the last decision or event of this kind, by pilot; epoch seconds."""
        with database.guarded(self.path):
            rows = self.connection.execute(
                "SELECT pilot, MAX(time) FROM decision WHERE kind = ? AND pilot IS NOT NULL GROUP BY pilot",
                (kind,),
            )
            return {pilot: float(at) for pilot, at in rows}
