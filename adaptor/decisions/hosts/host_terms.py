"""How the time of hosts is bought at a site, and until when that of a pilot is paid."""

from __future__ import annotations

from adaptor.budget.accounting.statements import Statements
from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.budget.provisioning.pacing import terms_for
from adaptor.decisions.snapshot import PilotFacts, SiteFacts
from adaptor.scheduling.facts import BagFacts


def host_terms(ledger: Statements, site: SiteFacts) -> HostTerms:
    return terms_for(ledger.tariff(site.name).charging_unit, site.rules.pad)


def charges_whole_units(ledger: Statements, site: SiteFacts) -> bool:
    """Whether time is charged in units that are long beside the start-up of a pilot.

    Where they are shorter, to go on costs less than to start another pilot, and none ends for their sake.
    """
    return ledger.tariff(site.name).charging_unit >= host_terms(ledger, site).unit


def ends_with_units(bag: BagFacts, ledger: Statements, site: SiteFacts) -> bool:
    """Whether the pilots of a bag end with a charging unit unless there is a reason to go on.

    Bags with a deadline and those that were bought from a quote keep theirs.
    """
    spec = bag.spec
    if spec.prefer is None or spec.slots or spec.deadline is not None:
        return False
    return charges_whole_units(ledger, site)


def end_takes(site: SiteFacts) -> float:
    """Seconds before the end of a unit in which it is decided, at one look or another, and a pilot ends."""
    return site.poll + site.rules.pad


def paid_until(pilot: PilotFacts, start: float, terms: HostTerms, now: float) -> float:
    """The end of the unit that is under way, or of the first one; epoch seconds."""
    return terms.paid_until(start, pilot.granted, now)


def pilot_start(pilot: PilotFacts, now: float) -> float:
    """When it started, or will at the earliest; epoch seconds."""
    return max(now, pilot.predicted_start or now) if pilot.started is None else pilot.started


def expected_end(bag: BagFacts, ledger: Statements, site: SiteFacts, pilot: PilotFacts, now: float) -> float:
    """When a pilot ends unless there is a reason to go on; epoch seconds."""
    start = pilot_start(pilot, now)
    if not ends_with_units(bag, ledger, site):
        return start + pilot.granted
    ends = paid_until(pilot, start, host_terms(ledger, site), now)
    return ends if ends == start + pilot.granted else max(now, ends - end_takes(site))
