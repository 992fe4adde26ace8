"""The journal's size and age as users see them."""

from __future__ import annotations

from pathlib import Path

from adaptor.journal.bag_views import count
from adaptor.journal.database import guarded
from adaptor.journal.forgetting import is_compact
from adaptor.journal.journal import Journal
from adaptor.views import JournalView


def size_of(path: Path) -> int:
    """Bytes of a journal's file, and of the log of what is not yet written into it."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def journal_view(journal: Journal, keep: float | None) -> JournalView:
    """`keep`: seconds, as configured. Raises JournalError."""
    with guarded(journal.path):
        db = journal.connection
        return JournalView(
            size=size_of(journal.path),
            bags=count(db),
            oldest=db.execute("SELECT MIN(submitted) FROM bag").fetchone()[0],
            keep=keep,
            compacting=not is_compact(db),
        )
