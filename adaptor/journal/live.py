"""What only a running daemon knows of bags, tasks and pilots, beside their journal."""

from __future__ import annotations

from adaptor.api import BagView, PilotRecord, RemovedPilotView, TaskView


class Live:
    """Completes views that the journal makes; this one leaves them as they are, since no daemon runs."""

    priced = False
    """Whether the prices of sites are known."""

    def bag(self, view: BagView) -> BagView:
        return view

    def task(self, view: TaskView) -> TaskView:
        return view

    def pilot(self, record: PilotRecord) -> PilotRecord:
        return record

    def removed(self) -> list[RemovedPilotView]:
        """Pilots of sites that the configuration no longer has."""
        return []


OFFLINE = Live()
