"""Faults by others who mean no harm: local users who want their nodes, and the owner of a budget."""

from __future__ import annotations

from collections.abc import Iterator

from lab.campaign.faults.catalog import claim, fault, present
from lab.campaign.world import World

DONATED = ("donation-scheduler", "donation-agents")


@fault("local job", weight=4, scenes=DONATED)
def local_job(world: World, draw: float) -> Iterator[str]:
    """On one to three whole nodes; whether it ran and what it found is looked at in the end."""
    with claim(world, f"controller {world.sites[0].name}"):
        name = present(world.local_jobs).submit(nodes=1 + int(3 * draw))
        yield name


@fault("budget: lowered", scenes=("budget",))
def budget_lowered(world: World, draw: float) -> Iterator[str]:
    """To hardly more than what is used and reserved; the bag pauses until somebody raises it."""
    with claim(world, "daemon"):
        yield f"to {world.set_budget(room=2 + 10 * draw):.3f}"


@fault("budget: raised", weight=2, scenes=("budget",))
def budget_raised(world: World, draw: float) -> Iterator[str]:
    with claim(world, "daemon"):
        yield f"to {world.set_budget(room=20 + 40 * draw):.3f}"
