"""A reclaim that a busy machine does not cut short."""

from __future__ import annotations

import msgspec

from adaptor.units import Duration
from tests.donation_agents.donated_nodes import DonatedNodes

PATIENCE = 20.0
"""Seconds that it may take; what was started before has the short grace with which it was started."""


def be_patient(nodes: DonatedNodes) -> None:
    """From now on what runs is ended by a daemon that was started anew, with much time for it."""
    nodes.donation = msgspec.structs.replace(nodes.donation, reclaim_timeout=Duration(PATIENCE))
    nodes.agents = nodes.reopened()
