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
from adaptor.decisions.actions import End, Prolong
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.requests import billed
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.model import PilotState, Request
from adaptor.protocol.messages import LAST_SECONDS
from adaptor.units import format_duration

LOOKS = 2  # looks at the site before its workers would leave, from which on more is paid for
MORE = 0.5  # of the time that is paid for: as much is added, if all that go on can have their part


class Due(msgspec.Struct, frozen=True):
    """A pilot whose paid time is nearly over."""

    pilot: Pilot
    known: Reserved
    among: int
    """Number of pilots of its bag that go on; each should have as much."""


def due_soon(snapshot: Snapshot) -> list[Due]:
    """The pilots with a use for more time than is paid for, that of which the least is left first."""
    site, now, ledger = snapshot.here, snapshot.now, snapshot.ledger
    going_on = [
        (pilot, known)
        for pilot in site.requests
        if (known := ledger.open_pilots.get(pilot.id)) is not None and _goes_on(snapshot, pilot, known)
    ]
    among = Counter(pilot.bag for pilot, _ in going_on)
    found = [
        (pilot.started + known.tr, Due(pilot, known, among[pilot.bag]))
        for pilot, known in going_on
        if pilot.started is not None and pilot.started + known.tr - now <= _margin(site)
    ]
    return [due for _, due in sorted(found, key=lambda each: (each[0], each[1].pilot.id))]


def prolonged(snapshot: Snapshot, ledger: Ledger, due: Sequence[Due]) -> Iterator[Prolong | Withdraw]:
    """More time for these pilots; queued ones of their bag are withdrawn where it lacks the money.

    None gets more than its part, or time until the next look: else those that come first would have all.

    Args:
        ledger: with all that is set aside so far, in this step too; what is added is set aside there.
    """
    now, margin = snapshot.now, _margin(snapshot.here)
    lacks = Counter[int | None]()
    for each in due:
        pilot, known = each.pilot, each.known
        wanted = known.tr + math.ceil(max(2 * margin, MORE * known.tr))
        most, paid = _within(snapshot, known, pilot, wanted), known.tr
        left = ledger.allowance(known.site, known.kind, known.shares, now).amount
        if left is not None:
            some = max(left // each.among, min(left, _added(known, known.tr + math.ceil(margin))))
            paid = known.tariff.affordable_seconds(known.kind, known.amount + some, max(1, known.held))
        paid = min(most, paid) if left is not None else most
        if paid > known.tr:
            ledger.change(pilot.id, Request(known.p, paid), now)
            yield Prolong(pilot.id, paid)
        if paid < most:
            lacks[pilot.bag] += _added(known, most) - _added(known, paid)
    yield from _given_up(snapshot, ledger, lacks)


def _margin(site: SiteFacts) -> float:
    """Seconds before the end of the paid time in which more is paid for."""
    return LAST_SECONDS + LOOKS * site.poll


def _within(snapshot: Snapshot, known: Reserved, pilot: Pilot, wanted: int) -> int:
    """Seconds to pay for: whole units, as they are charged, and no more than the walltime."""
    unit, grace = known.tariff.charging_unit, known.tariff.grace
    whole = math.ceil((wanted + grace) / unit) * unit - grace
    return min(whole, billed(snapshot.here.rules, pilot.request).tr)


def _added(known: Reserved, paid: int) -> int:
    """Millionths of a credit by which a reservation grows."""
    return max(0, msgspec.structs.replace(known, tr=paid).most - known.most)


def _given_up(snapshot: Snapshot, ledger: Ledger, lacks: Counter[int | None]) -> Iterator[Withdraw]:
    """Queued pilots whose money is worth more to those that run, the youngest first."""
    for pilot in reversed(snapshot.here.requests):
        queued = pilot.state is PilotState.QUEUED and pilot.job is not None and not pilot.leaving
        known = ledger.open_pilots.get(pilot.id)
        if queued and known is not None and lacks[pilot.bag] > 0:
            lacks[pilot.bag] -= known.amount
            yield Withdraw(pilot.id, "what its budget leaves goes to pilots that run already")


def _goes_on(snapshot: Snapshot, pilot: Pilot, known: Reserved) -> bool:
    """Whether it has a use for more time than is paid for."""
    bag = snapshot.bags.get(pilot.bag) if pilot.bag is not None else None
    if bag is None or pilot.state is not PilotState.RUNNING or pilot.leaving:
        return False
    useful = bag.by_pilot.get(pilot.id) or (bag.waiting and pilot.processors)
    return bool(useful) and known.tr < billed(snapshot.here.rules, pilot.request).tr


def unpaid(snapshot: Snapshot) -> Iterator[End]:
    """Ends pilots that run on although the time that is paid for is over: their workers do not answer."""
    site, now = snapshot.here, snapshot.now
    for pilot in site.requests:
        known = snapshot.ledger.open_pilots.get(pilot.id)
        if known is None or pilot.started is None or pilot.leaving:
            continue
        paid = known.tr < billed(site.rules, pilot.request).tr
        if paid and now > pilot.started + known.tr + known.tariff.grace / 2:
            yield End(pilot.id, f"its budget paid for {format_duration(known.tr)}, which are over")
