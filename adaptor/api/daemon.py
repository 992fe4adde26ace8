"""The daemon itself."""

from __future__ import annotations

import msgspec

from adaptor.api.fields import Time
from adaptor.api.question import Question


class JournalView(msgspec.Struct, frozen=True, kw_only=True):
    """The journal's size and age."""

    size: int
    """Bytes of the file, and of what is not yet written into it."""
    bags: int
    """Those that are kept."""
    oldest: Time | None
    """When the oldest of them was submitted, epoch seconds."""
    keep: float | None
    """Seconds for which bags are kept after their end; None: until they are forgotten."""
    compacting: bool
    """Whether rows of forgotten bags are still being removed."""


class RatesView(msgspec.Struct, frozen=True, kw_only=True):
    """What the daemon did and took in the last seconds, an hour at most."""

    seconds: float
    results: int
    """Attempts that ended."""
    journal_growth: int
    """Bytes; below 0: it shrank."""
    scheduler_commands: int
    cpu: float
    """CPU seconds of the daemon and of the commands that it ran."""
    memory: int
    """Bytes of the daemon that are in memory now."""


class DaemonView(msgspec.Struct, frozen=True, kw_only=True):
    """`adaptor daemon status`."""

    pid: int
    host: str
    version: str
    started: Time
    state_directory: str
    addresses: list[str]
    workers: int
    stalled: str
    """Empty, or why nothing can be written down now (a full disk)."""
    config_file: str = ""
    """Of the configuration; empty: there was none."""
    config_digest: str = ""
    """Of its content when it was loaded; empty: there was none."""
    config_problem: str = ""
    """Why the last reload failed after all, so that the one before it goes on; empty: it did not."""
    journal: JournalView
    rates: RatesView


class GetDaemon(Question[DaemonView], frozen=True):
    pass


class Stop(Question[None], frozen=True):
    """End the daemon. `pilots`: cancel its pilots too; otherwise they go on and are met again."""

    pilots: bool = False


class Reloading(msgspec.Struct, frozen=True):
    """What changes; the daemon is away for a moment, unless nothing does."""

    file: str
    digest: str
    added: list[str]
    """Sites."""
    removed: list[str]
    changed: list[str]
    others: list[str]
    """Other sections of the file."""

    @property
    def any(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.others)


class Reload(Question[Reloading], frozen=True):
    """Take the configuration over as its file is now; answered once it was checked."""

    takes_time = True
    writes = True
