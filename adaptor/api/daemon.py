"""State and resources of the daemon; its identity is in `adaptor/api/frozen.py`."""

from __future__ import annotations

import msgspec

from adaptor.api.question import Question, Time


class JournalView(msgspec.Struct, frozen=True, kw_only=True):
    """The journal's size and age."""

    size: int  # bytes of the file, and of what is not yet written into it
    bags: int  # number of kept bags
    oldest: Time | None  # submission of the oldest of them, epoch seconds
    keep: float | None  # seconds for which bags are kept after their end; None: until they are forgotten
    compacting: bool  # whether rows of forgotten bags are still being removed


class RatesView(msgspec.Struct, frozen=True, kw_only=True):
    """Work of the daemon and resources that it took in the last seconds, an hour at most."""

    seconds: float
    results: int  # attempts that ended
    journal_growth: int  # bytes; below 0: it shrank
    scheduler_commands: int
    cpu: float  # CPU seconds of the daemon and of the commands that it ran
    memory: int  # bytes of the daemon that are in memory now


class UpkeepView(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of `adaptor status --daemon` in addition to `DaemonView`."""

    addresses: list[str]
    journal: JournalView
    rates: RatesView


class GetUpkeep(Question[UpkeepView], frozen=True):
    pass
