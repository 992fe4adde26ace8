"""How long the planner takes for its decisions."""

from __future__ import annotations

import time

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Decision, PlanningView


class TimedPlanner:
    """Asks the planner, and takes the time."""

    def __init__(self) -> None:
        self.decisions = 0
        self.seconds = 0.0
        """Of processor time."""

    def __call__(self, view: PlanningView) -> list[Decision]:
        begin = time.process_time()
        decisions = plan(view)
        self.seconds += time.process_time() - begin
        self.decisions += 1
        return decisions
