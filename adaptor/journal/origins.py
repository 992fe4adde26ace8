"""Where attempts were started, as the journal has it."""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.journal.database import guarded
from adaptor.journal.journal import Journal
from adaptor.protocol.messages import AttemptKey


def pilots_of(journal: Journal, keys: Iterable[AttemptKey]) -> dict[tuple[int, str], list[AttemptKey]]:
    """The attempts by the pilot in which they were started, and its site; unknown ones are left out.

    Raises:
        JournalError: it cannot be read.
    """
    found: dict[tuple[int, str], list[AttemptKey]] = {}
    with guarded(journal.path):
        for key in keys:
            row = journal.connection.execute(
                "SELECT pilot.id, pilot.site FROM attempt JOIN pilot ON pilot.id = attempt.pilot"
                " WHERE attempt.bag = ? AND attempt.task = ? AND attempt.number = ?",
                (key.bag, key.task, key.attempt),
            ).fetchone()
            if row is not None:
                found.setdefault(row, []).append(key)
    return found
