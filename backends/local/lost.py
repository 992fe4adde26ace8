"""Jobs whose supervisor is gone without having written down their end. As a node that failed."""

from __future__ import annotations

from adaptor.processes.identity import Identity, host, is_alive, is_here
from adaptor.processes.leftovers import end_leftovers
from adaptor.processes.notes import END
from adaptor.reports import JobState
from backends.local.records import End, Entry
from backends.local.store import Store

_SLACK = 60.0
"""Seconds after its limit and grace for which a job of another machine is given the benefit of the doubt."""


def end_lost(entries: list[Entry], store: Store, now: float) -> bool:
    """Write down the end of lost jobs and end what they left behind; whether there were any.

    Raises:
        SchedulerError: an end cannot be written down.
    """
    lost = [(entry, why) for entry in entries if (why := _why_lost(entry, now))]
    for entry, why in lost:
        # Its supervisor may have written the end after the notes were read and before it left.
        if not store.note(entry.job.id, END).exists():
            end_leftovers(entry.job.marker)
            end = End(ended=min(now, entry.limit), state=JobState.NODE_FAILED, reason=why)
            store.write(entry.job.id, END, end)
    return bool(lost)


def _why_lost(entry: Entry, now: float) -> str:
    supervisor = entry.start.supervisor if entry.start is not None else None
    if entry.state is not JobState.RUNNING or supervisor is None or is_alive(supervisor):
        return ""
    if is_here(supervisor):
        return f"its supervisor (process {supervisor['pid']}) was killed"
    if supervisor["host"] == host():
        return "the machine was restarted while it ran"
    return _why_lost_elsewhere(entry, supervisor, now)


def _why_lost_elsewhere(entry: Entry, supervisor: Identity, now: float) -> str:
    """Nothing can be seen of another machine's processes, but none outlives its time limit there."""
    over = now > entry.limit + entry.job.grace + _SLACK
    return f"its end on {supervisor['host']} was never written down" if over else ""
