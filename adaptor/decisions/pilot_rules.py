"""Rules on single pilots: those that can never start, those without a call from a worker, the pad."""

from __future__ import annotations

from collections.abc import Iterator

from adaptor.crafting.situation import Withdraw
from adaptor.decisions.actions import Action, End, LengthenPad, Remark
from adaptor.decisions.snapshot import PilotFacts, SiteFacts, Snapshot
from adaptor.model import PilotState
from adaptor.protocol.messages import LAST_SECONDS
from adaptor.units import format_duration

UNREACHED = 40.0
"""Seconds without a call from any worker after which a running pilot is remarked on."""
DESERTED = 300.0
"""Seconds without any of its workers after which a running pilot is ended. Its scheduler may keep it until
the walltime, as Slurm does where a slurmstepd was killed and `srun` waits for it. Long, because workers
that the daemon cannot hear go on with their tasks."""


def is_deserted(pilot: PilotFacts, now: float) -> bool:
    """Whether workers of a formal request have called, and none has been known for long."""
    since = pilot.without_worker_since
    heard = pilot.state is PilotState.RUNNING and pilot.first_hello is not None
    return heard and not pilot.node and since is not None and now - since > DESERTED


def is_unheard(pilot: PilotFacts, now: float) -> bool:
    """Whether it has run for long and no worker of it has called."""
    if pilot.state is not PilotState.RUNNING or pilot.started is None or pilot.first_hello is not None:
        return False
    return now - max(pilot.started, pilot.known_since) > UNREACHED


def on_pilots(snapshot: Snapshot) -> Iterator[Action]:
    """Withdrawals, remarks and a longer pad."""
    site, now = snapshot.here, snapshot.now
    for pilot in site.pilots:
        if pilot.never and not pilot.leaving and pilot.state is PilotState.QUEUED:
            yield Withdraw(pilot.id, f"the scheduler would never start it: {pilot.never}")
        if is_unheard(pilot, now) and pilot.unheard is not None:
            yield from _unheard(snapshot, site, pilot, pilot.unheard)
        if is_deserted(pilot, now) and not pilot.leaving:
            yield End(pilot.id, f"none of its workers has answered for {format_duration(DESERTED)}")
    pad = max((_overhead(site, pilot) for pilot in site.requests), default=0.0)
    if pad > site.rules.pad:
        yield LengthenPad(pad)


def _unheard(snapshot: Snapshot, site: SiteFacts, pilot: PilotFacts, left: str) -> Iterator[Action]:
    ran = format_duration(snapshot.now - (snapshot.now if pilot.started is None else pilot.started))
    told = f"has run for {ran}, but none of its workers has reached the daemon"
    yield Remark(pilot.id, f"{told}; {site.unreachable_because} {left}".strip())
    if not snapshot.work:
        yield End(pilot.id, _NO_USE)


def _overhead(site: SiteFacts, pilot: PilotFacts) -> float:
    """Seconds of the pilot that no task could use; 0 where that is not known."""
    if pilot.state is not PilotState.RUNNING or pilot.started is None or pilot.first_hello is None:
        return 0.0
    if pilot.known_since > pilot.started:  # its workers may have called while no daemon listened
        return 0.0
    overhead = pilot.first_hello - pilot.started + LAST_SECONDS + 1
    return min(overhead, site.rules.limits.max_tr / 2)


_NO_USE = "no tasks are left, and none of its workers can be reached"
