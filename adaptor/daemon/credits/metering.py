"""How the pilots of bags that pay for themselves are charged, for those who use what is paid."""

from __future__ import annotations

from adaptor.daemon.pilots import Pilot
from adaptor.daemon.site_state import SiteState
from adaptor.model import PilotState
from adaptor.scheduling.state import Meter

SLACK = 10.0
"""Seconds that a worker takes to hear that it is not needed and to leave, at most, besides its idle time."""


def read_meter(site: SiteState, pilot: Pilot) -> None:
    """Tell the broker since when and in which units a running pilot is charged."""
    reserved = site.core.treasury.ledger.open_pilots.get(pilot.id)
    if pilot.state is not PilotState.RUNNING or pilot.started is None or reserved is None:
        site.core.broker.meter(pilot.id, None)
        return
    meter = Meter(
        started=pilot.started,
        unit=float(reserved.tariff.charging_unit),
        spare=float(site.config.idle_timeout) + SLACK,
    )
    site.core.broker.meter(pilot.id, meter)
