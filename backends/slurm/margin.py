"""How much shorter than a free slot a request must be for Slurm to start it there."""

from __future__ import annotations

import re
from collections.abc import Mapping

TIME_RESOLUTION = 60
"""Seconds to which Slurm rounds a time limit up."""
_RESOLUTION = 60
_INTERVAL = 30
_DELAY = 10
"""Seconds that may pass between our look at the queue and the arrival of the request."""


def slot_margin(settings: Mapping[str, str]) -> int:
    """Seconds, from `scontrol show config` (slurm.conf(5), SchedulerParameters).

    The backfill scheduler rounds the start of a planned job down to a multiple of bf_resolution, so a
    hole ends up to that much earlier for it than its start says; and it may only look at the request
    after bf_interval, while the hole gets shorter. Measured on Slurm 22.05.8: before a job planned for
    08:58:34 requests started whose limit left at least 36 s, not those that left 35 s or less.
    """
    parameters = settings.get("SchedulerParameters", "")
    return (
        _number(parameters, "bf_resolution", _RESOLUTION)
        + _number(parameters, "bf_interval", _INTERVAL)
        + _DELAY
    )


def _number(parameters: str, name: str, default: int) -> int:
    found = re.search(rf"(?:^|,){name}=([0-9]{{1,9}})(?![0-9])", parameters)
    return int(found[1]) if found else default
