"""What the completion heuristic decides about: a bag, its pilots, and where requests for it may go. Pure."""

from __future__ import annotations

import msgspec

from adaptor.crafting.completion.beliefs import settled_after
from adaptor.crafting.coverage import slots_in
from adaptor.crafting.places import Place
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Demand, PilotView
from adaptor.model import PilotState


class Bag(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one demand, the pilots that serve it, and what may be asked for them. Times in seconds."""

    now: float
    demand: Demand
    tasks: int
    """That wait or run, as far as they are this site's."""
    places: list[Place]
    """With all requests, those of the pilots too, and with the demand's bounds. One at least is usable."""
    shapes: list[RequestShape]
    """By place: the possible requests there."""
    pilots: tuple[PilotView, ...]
    allowed: int
    """Requests that may be made now, in all places together."""
    one_at_a_time: bool
    """Whether only one request may be in the system."""
    may_withdraw: bool
    """Whether a request may be withdrawn, or ended, for better ones."""

    @property
    def max_tr(self) -> int:
        """The longest request that may be made."""
        return max(place.rules.limits.max_tr for place in self.places if place.usable)

    def place_of(self, partition: str) -> int:
        """The number of the place with this name; the first one where it gets no request now."""
        names = [place.name for place in self.places]
        return names.index(partition) if partition in names else 0

    def slots(self, pilot: PilotView) -> int:
        """Tasks that run at the same time in a pilot, on the workers that are still connected."""
        processors = pilot.processors if pilot.state is PilotState.RUNNING else None
        unit = self.shapes[self.place_of(pilot.partition)].unit
        return slots_in(pilot, pilot.request.p if processors is None else processors, self.demand, unit)

    def may_give_up(self, pilot: PilotView) -> bool:
        """Whether a pilot may make room for a better request: what runs has shown what it brings, and local
        jobs have taken the place of what was queued just before."""
        since = pilot.started if pilot.state is PilotState.RUNNING else pilot.submitted
        age = settled_after(self.max_tr) if since is None else self.now - since
        return self.may_withdraw and pilot.job is not None and age >= settled_after(self.max_tr)
