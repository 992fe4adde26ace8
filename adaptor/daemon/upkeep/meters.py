"""Rates of the last hour: results, commands, CPU seconds, the journal's growth."""

from __future__ import annotations

import os
import resource
from collections import deque
from pathlib import Path

import msgspec

from adaptor.api import JournalView, RatesView
from adaptor.journal.database import guarded
from adaptor.journal.forgetting import is_compact
from adaptor.journal.journal import Journal
from adaptor.journal.views import count
from backends.commands import commands_run

_KEPT = 61  # samples, one a minute: the first is about an hour old


class _Sample(msgspec.Struct, frozen=True):
    at: float
    results: int
    journal: int
    commands: int
    cpu: float


class Meters:
    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._samples: deque[_Sample] = deque(maxlen=_KEPT)

    def measure(self, now: float, results: int) -> None:
        """Take a sample; `results`: attempts that ended since the process began."""
        self._samples.append(self._sample(now, results))

    def rates(self, now: float, results: int) -> RatesView:
        """Results, growth of the journal, commands and processor time since the oldest sample; memory now."""
        last = self._sample(now, results)
        first = self._samples[0] if self._samples else last
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return RatesView(
            seconds=max(0.0, last.at - first.at),
            results=last.results - first.results,
            journal_growth=last.journal - first.journal,
            scheduler_commands=last.commands - first.commands,
            cpu=last.cpu - first.cpu,
            memory=(pages * os.sysconf("SC_PAGE_SIZE")),
        )

    def _sample(self, now: float, results: int) -> _Sample:
        used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return _Sample(
            now,
            results,
            size_of(self._journal),
            commands_run(),
            sum(each.ru_utime + each.ru_stime for each in used),
        )


def size_of(path: Path) -> int:
    """Bytes of a journal's file, and of the log of what is not yet written into it."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def journal_view(journal: Journal, keep: float | None) -> JournalView:
    """Figures of the journal. `keep`: seconds, as configured. Raises JournalError."""
    with guarded(journal.path):
        db = journal.connection
        return JournalView(
            size=size_of(journal.path),
            bags=count(db),
            oldest=db.execute("SELECT MIN(submitted) FROM bag").fetchone()[0],
            keep=keep,
            compacting=not is_compact(db),
        )
