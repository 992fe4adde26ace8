"""Bags that get no request because of their budget or deadline. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from adaptor.decisions.memory import Memory
from adaptor.decisions.shares import shares_of


def why_paused(memory: Memory, bag: int, sites: Sequence[str]) -> str:
    """Why nothing is bought for a bag at any of these sites; empty: something may be.

    Sites that are to have nothing of what waits, by cost and time, do not count.
    """
    shares = shares_of(memory, bag)
    wanted = [name for name in sites if shares is None or shares.tasks(name)] or sites
    reasons = [memory.paused.get(name, {}).get(bag, "") for name in wanted]
    return reasons[0] if reasons and all(reasons) else ""
