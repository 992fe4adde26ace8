"""Queued pilots that nothing needs any more, and why. Pure."""

from __future__ import annotations

from collections.abc import Container

from adaptor.crafting.coverage import has_slot, holds
from adaptor.crafting.refusal import too_short
from adaptor.crafting.situation import PilotView, PlanningView, Withdraw
from adaptor.model import PilotState
from adaptor.units import counted


def withdrawals(view: PlanningView, needless: Container[int]) -> list[Withdraw]:
    """Of the pilots that `coverage` finds needless, those that have not started."""
    return [
        Withdraw(pilot.id, _why_needless(view, pilot))
        for pilot in view.pilots
        if pilot.id in needless and pilot.state is PilotState.QUEUED
    ]


def _why_needless(view: PlanningView, pilot: PilotView) -> str:
    served = [demand for demand in view.demands if demand.bag == pilot.bag]
    demands = [demand for demand in served if demand.waiting]
    if not demands:
        return f"no task waits ({sum(demand.running for demand in served)} running)"
    long_enough = [demand for demand in demands if holds(pilot, demand)]
    if not long_enough:
        return too_short(pilot, demands)
    fitting = [demand for demand in long_enough if has_slot(view, pilot, demand)]
    if not fitting:
        narrowest = min(demand.task.processors for demand in long_enough)
        return (
            f"{counted(pilot.request.p, 'processor')} cannot run any waiting task: "
            f"the narrowest needs {narrowest}"
        )
    waiting = sum(demand.waiting for demand in fitting)
    fit = "fits" if waiting == 1 else "fit"
    return f"the {counted(waiting, 'waiting task')} already {fit} in idle slots and earlier pilots"
