"""Which pilots serve which demand of a site. Pure."""

from __future__ import annotations

from collections.abc import Collection

from adaptor.crafting.coverage import has_slot, holds
from adaptor.crafting.situation import PilotView, PlanningView


def pilots_by_demand(view: PlanningView, served: Collection[int]) -> dict[int, list[PilotView]]:
    """The pilots in the system that stay, each with the demand that it serves.

    That is the one it was made for while that has waiting tasks, else the first whose tasks it can run. One
    that can run none goes to a demand with which it shares its bag, since tasks may run there; it is nobody's
    if there is none.

    Args:
        served: places of the demands with waiting tasks.
    """
    found: dict[int, list[PilotView]] = {index: [] for index in served}
    for pilot in view.pilots:
        if (
            pilot.state.in_system
            and not pilot.leaving
            and (index := _served_by(view, pilot, served)) is not None
        ):
            found[index].append(pilot)
    return found


def _served_by(view: PlanningView, pilot: PilotView, served: Collection[int]) -> int | None:
    same = [index for index in sorted(served) if view.demands[index].bag == pilot.bag]
    made_for = [index for index in same if view.demands[index].shape == pilot.shape]
    able = [
        index
        for index in same
        if holds(pilot, view.demands[index]) and has_slot(view, pilot, view.demands[index])
    ]
    return next(iter([*made_for, *able, *same]), None)
