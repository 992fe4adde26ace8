"""More time for running pilots whose walltime is paid for in parts. Pure.

A pilot of a bag with a budget begins with a part of its walltime paid for. What other pilots give back pays
for those that go on: so a budget that is enough for the work is enough for the longest tasks, too, and it
need not be known which these are. Without more money its workers end it when the paid time is over.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.budget.accounting.entries import Reserved
from adaptor.budget.accounting.ledger import Ledger
from adaptor.crafting.situation import Withdraw
from adaptor.decisions.actions import Prolong
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.model import PilotState
from adaptor.protocol.messages import LAST_SECONDS
from adaptor.units import format_duration

LOOKS = 2  # looks at the site before its workers would leave, from which on more is paid for
MORE = 0.5  # of the time that is paid for: as much is added, if all that go on can have their part


class Due(msgspec.Struct, frozen=True):
    """A pilot whose paid time is nearly over."""

    pilot: Pilot
    known: Reserved
    paid: int
    """Seconds since its start that are paid for."""
    among: int
    """Number of pilots of its bag that go on; each should have as much."""
    leaves: float
    """Epoch seconds at which that time is over."""


def due_soon(snapshot: Snapshot) -> list[Due]:
    """The pilots with a use for more time than is paid for, that of which the least is left first."""
    site, now = snapshot.here, snapshot.now
    going_on = [pilot for pilot in site.requests if _goes_on(snapshot, pilot)]
    parts = [
        (pilot, known, known.paid)
        for pilot in going_on
        if (known := snapshot.ledger.open_pilots.get(pilot.id)) is not None and known.paid is not None
    ]
    among = Counter(pilot.bag for pilot, _, _ in parts)
    found = [
        Due(pilot, known, paid, among[pilot.bag], pilot.started + paid)
        for pilot, known, paid in parts
        if pilot.started is not None
    ]
    margin = _margin(site)
    due = [each for each in found if each.leaves - now <= margin + _next_task(snapshot, each.pilot)]
    return sorted(due, key=lambda each: (each.leaves, each.pilot.id))


def prolonged(snapshot: Snapshot, ledger: Ledger, due: Sequence[Due]) -> Iterator[Prolong | Withdraw]:
    """More time for these pilots; queued ones of their bag are withdrawn where it lacks the money.

    None gets more than its part: else those that come first would have all. One that would leave before the
    next look gets the time until then.

    Args:
        ledger: with all that is set aside so far, in this step too; what is added is set aside there.
    """
    now, margin = snapshot.now, _margin(snapshot.here)
    lacks, served = Counter[int | None](), Counter[int | None]()

    def leaves(due: Due, paid: int) -> bool:
        """Whether its workers would leave before the next look."""
        return due.leaves + paid - due.paid <= now + LAST_SECONDS + snapshot.here.poll

    for each in due:
        pilot, known = each.pilot, each.known
        more = max(2 * margin + _next_task(snapshot, pilot), MORE * each.paid)
        most = paid = _whole(known, each.paid + more)
        left = ledger.allowance(known.site, known.kind, known.shares, now).amount
        if left is not None:
            paid = min(most, _paid_for(known, left // (each.among - served[pilot.bag])))
            if leaves(each, paid):
                enough = _added(known, each.paid + math.ceil(margin))
                paid = max(paid, min(most, _paid_for(known, min(left, enough))))
        if paid < min(most, each.paid + snapshot.here.poll) and not leaves(each, each.paid):
            continue  # each is an order to its workers
        served[pilot.bag] += 1
        if paid > each.paid:
            ledger.prolong(pilot.id, paid, now)
            yield Prolong(pilot.id, paid)
        if paid < most and leaves(each, paid):
            lacks[pilot.bag] += _added(known, most) - _added(known, paid)
    yield from _given_up(snapshot, ledger, lacks)


def _margin(site: SiteFacts) -> float:
    """Seconds before the end of the paid time in which more is paid for."""
    return LAST_SECONDS + LOOKS * site.poll


def _next_task(snapshot: Snapshot, pilot: Pilot) -> float:
    """Seconds that must be left for the next task: a slot that has less runs none."""
    bag = snapshot.payer(pilot.bag)
    return bag.learned[snapshot.site].even if bag is not None and bag.waiting else 0.0


def _whole(known: Reserved, wanted: float) -> int:
    """Seconds to pay for: whole units, as they are charged, and no more than the walltime and its grace."""
    return min(known.tariff.charged_seconds(wanted), known.tr + known.tariff.grace)


def _paid_for(known: Reserved, more: int) -> int:
    """Seconds that are paid for with more credits (millionths)."""
    amount = known.amount + more
    return known.tariff.of_parts.affordable_seconds(known.kind, amount, max(1, known.held))


def _added(known: Reserved, paid: int) -> int:
    """Millionths of a credit by which a reservation grows."""
    return max(0, known.paid_until(paid).most - known.most)


def _given_up(snapshot: Snapshot, ledger: Ledger, lacks: Counter[int | None]) -> Iterator[Withdraw]:
    """Queued pilots whose money is worth more to those that run, the youngest first."""
    for pilot in reversed(snapshot.here.requests):
        queued = pilot.state is PilotState.QUEUED and pilot.job is not None and not pilot.leaving
        known = ledger.open_pilots.get(pilot.id)
        if queued and known is not None and lacks[pilot.bag] > 0:
            lacks[pilot.bag] -= known.amount
            yield Withdraw(pilot.id, "what its budget leaves goes to pilots that run already")


def _goes_on(snapshot: Snapshot, pilot: Pilot) -> bool:
    """Whether it has a use for more time."""
    bag = snapshot.payer(pilot.bag)
    if bag is None or pilot.state is not PilotState.RUNNING or pilot.leaving:
        return False
    return bool(bag.by_pilot.get(pilot.id) or (bag.waiting and pilot.processors))


def why_unpaid(snapshot: Snapshot, pilot: Pilot) -> str:
    """Why a pilot ends that runs on although the time that is paid for is over: its workers do not answer.
    Empty: it may go on."""
    known = snapshot.ledger.open_pilots.get(pilot.id)
    if known is None or known.paid is None or pilot.started is None or pilot.leaving:
        return ""
    # A look later, since it may have ended, and not been seen to have.
    if snapshot.now <= pilot.started + known.paid + snapshot.here.poll:
        return ""
    return f"its budget paid for {format_duration(known.paid)}, which are over"
