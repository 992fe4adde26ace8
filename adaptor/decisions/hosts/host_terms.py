"""How the time of hosts is bought at a site, and until when that of a pilot is paid."""

from __future__ import annotations

import math

from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.budget.provisioning.pacing import terms_for
from adaptor.decisions.snapshot import PilotFacts, SiteFacts, Snapshot


def host_terms(snapshot: Snapshot, site: SiteFacts) -> HostTerms:
    return terms_for(snapshot.ledger.tariff(site.name).charging_unit, site.rules.pad)


def paid_until(pilot: PilotFacts, start: float, terms: HostTerms, now: float) -> float:
    """The end of the unit that is under way, or of the first one; epoch seconds."""
    begun = max(1, math.ceil((now - start) / terms.unit))
    return start + min(begun * terms.unit, pilot.granted)
