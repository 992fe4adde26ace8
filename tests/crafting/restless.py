"""A planner that withdraws queued requests again and again: the worst that a heuristic may do."""

from __future__ import annotations

from adaptor.crafting.multisite.division import SitePart
from adaptor.crafting.planner import plan, within_rules
from adaptor.crafting.situation import PlannedAction, SiteState, Withdraw
from adaptor.model import PilotState


def restless(view: SiteState, part: SitePart | None = None, every: int = 3) -> list[PlannedAction]:
    """Decisions of the heuristic; in addition, of `every` queued pilots one is withdrawn."""
    planned = plan(view, part)
    going = {each.pilot for each in planned if isinstance(each, Withdraw)}
    turn = int(view.now) // 15
    withdrawals = [
        Withdraw(pilot.id, "another one would be better", recraft=True)
        for pilot in view.requests
        if pilot.state is PilotState.QUEUED and pilot.id not in going and (pilot.id + turn) % every == 0
    ]
    return within_rules(view, [*withdrawals, *planned])
