"""Results of workers whose pilots have ended for the scheduler, and were charged: they count all the same."""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.daemon.core import Core
from adaptor.protocol.messages import Ending, Result

_OF_THE_TASK = frozenset({Ending.EXITED, Ending.SIGNALLED, Ending.NOT_STARTED})
"""Ends that say something of the task; how all others came about, the pilot's own end has said."""


def hear_late(core: Core, results: Iterable[Result], now: float) -> None:
    """Take in what the tasks came to, as far as it is still of interest. Raises JournalError."""
    told = {result.key: result for result in results if result.ending in _OF_THE_TASK}
    for (pilot, site), keys in core.journal.started_in(told).items():
        if site in core.terms:
            core.broker.left_behind(pilot, site, [told[key] for key in keys], now)
