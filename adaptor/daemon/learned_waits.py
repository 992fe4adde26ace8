"""What the pilots of a site teach about its waits, as they happen and from the journal."""

from __future__ import annotations

from adaptor.crafting.multisite.waits import WaitLearner
from adaptor.daemon.pilots import Pilot
from adaptor.journal.journal import Journal
from adaptor.model import PilotState


def learn_wait(waits: WaitLearner, pilot: Pilot) -> None:
    """Take in the wait of a pilot once it is known; one that was refused has not waited."""
    if pilot.wait_known or pilot.predicted_start is None or pilot.state is PilotState.REFUSED:
        return
    pilot.wait_known = _take_in(waits, pilot.request.p, pilot.predicted_start, pilot.started, pilot.ended)


def recall_waits(journal: Journal, site: str) -> WaitLearner:
    """What was learned before the daemon's restart. Raises JournalError."""
    waits = WaitLearner()
    for each in journal.waits(site):
        _take_in(waits, each.p, each.predicted_start, each.started, each.ended)
    return waits


def _take_in(
    waits: WaitLearner, processors: int, predicted: float, started: float | None, ended: float | None
) -> bool:
    """Whether the wait is over."""
    if started is not None:
        waits.started(processors, started - predicted, started)
    elif ended is not None and ended > predicted:
        waits.gave_up(processors, ended - predicted, ended)
    return started is not None or ended is not None
