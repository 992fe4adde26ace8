"""What becomes of a pilot whose charging unit ends (Silva et al. 2011, §3.5). Pure."""

from __future__ import annotations

from adaptor.budget.provisioning.a2ha import goes_on
from adaptor.budget.provisioning.pacing import situation_of
from adaptor.decisions.hosts.aims import course_of
from adaptor.decisions.hosts.host_terms import end_takes, ends_with_units, host_terms, paid_until
from adaptor.decisions.requests import slots_of
from adaptor.decisions.snapshot import PilotFacts, SiteFacts, Snapshot
from adaptor.scheduling.facts import BagFacts
from adaptor.units import counted


def why_not_another_unit(snapshot: Snapshot, site: SiteFacts, pilot: PilotFacts) -> str:
    """Why a pilot ends with the charging unit that is nearly over; empty: it goes on, or no unit ends.

    A pilot is charged as a whole, so its slots go on together: where half of them at least run a task that
    should go on.
    """
    bag = snapshot.bags.get(pilot.bag) if pilot.bag is not None else None
    if bag is None or pilot.node or pilot.leaving or pilot.started is None:
        return ""
    if not ends_with_units(bag, snapshot.ledger, site):
        return ""
    ends = paid_until(pilot, pilot.started, host_terms(snapshot.ledger, site), snapshot.now)
    if ends >= pilot.started + pilot.granted or ends - snapshot.now > end_takes(site):
        return ""
    slots = slots_of(site, pilot, bag)
    going = _going_on(snapshot, bag, pilot)
    if 2 * going >= slots:
        return ""
    return (
        f"its charging unit ends, and of its {counted(slots, 'slot')} {going} should go on: "
        "the other tasks cost less where they start anew"
    )


def _going_on(snapshot: Snapshot, bag: BagFacts, pilot: PilotFacts) -> int:
    """Its running tasks that should go on."""
    course = course_of(snapshot, bag, but=pilot.id)
    others = situation_of(course)
    starts = bag.by_pilot.get(pilot.id, ())
    return sum(goes_on(others, course.preset, snapshot.now - start) for start in starts)
