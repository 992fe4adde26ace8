"""A planner that withdraws queued requests and ends running ones again and again: the worst that a heuristic
may do."""

from __future__ import annotations

from adaptor.crafting.multisite.site_status import SitePart
from adaptor.crafting.planner import plan, within_rules
from adaptor.crafting.situation import Decision, PlanningView, Withdraw
from adaptor.model import PilotState

_AT_LEAST = 100.0
"""Seconds that a pilot runs, so that tasks of a minute and a half get done."""


def restless(view: PlanningView, part: SitePart | None = None, every: int = 3) -> list[Decision]:
    """What the heuristic decides; beside it, of `every` queued pilots one is withdrawn, and now and then
    one ends that runs."""
    planned = plan(view, part)
    going = {each.pilot for each in planned if isinstance(each, Withdraw)}
    turn = int(view.now) // 15
    withdrawals = [
        Withdraw(pilot.id, "another one would be better", recraft=True)
        for pilot in view.pilots
        if pilot.state is PilotState.QUEUED and pilot.id not in going and (pilot.id + turn) % every == 0
    ]
    ends = [
        Withdraw(pilot.id, "another one would be better", recraft=True, running=True)
        for pilot in view.pilots
        if pilot.state is PilotState.RUNNING
        and pilot.started is not None
        and view.now - pilot.started >= _AT_LEAST
        and (pilot.id + int(view.now) // 60) % (3 * every) == 0
    ]
    return within_rules(view, [*withdrawals, *ends, *planned])
