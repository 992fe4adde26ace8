"""Requests of a bag's course to the sites, and the pilots that it gets. Frozen types."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.model import PriceKind
from adaptor.runtimes.known import KnownRuntimes
from adaptor.runtimes.learner import RuntimeLearner


class PilotAhead(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that runs, or will. Epoch seconds."""

    site: str = ""
    p: int = 0
    """Processors that it holds there."""
    pilots: int = 1
    """Pilots that it stands for."""
    slots: int
    began: float = 0.0
    """Epoch seconds of the start of its request, from which on it is charged."""
    start: float
    """Epoch seconds at which its slots take their first tasks."""
    end: float
    """Epoch seconds from which on no task runs in it."""
    elapsed: Sequence[float] = ()
    """Seconds for which the tasks that run in it have run."""
    bounds: Sequence[float] = ()
    """Seconds for which each of these ran before, when it was cut; 0: it was not."""
    useful: float = 0.0
    """Seconds of a slot for tasks, as planned."""
    tariff: Tariff | None = None
    """Tariff of its pilots; None: they are not charged to the bag."""
    kind: PriceKind = "explicit"
    unit: float = math.inf
    """Seconds of a unit, at each end of which it may end."""
    lead: float = 0.0
    """Seconds before the end of a unit at which that is decided."""

    def charge(self, until: float) -> int:
        """Millionths of a credit if it ends then; 0 if it has not started by then."""
        if self.tariff is None or until <= self.began:
            return 0
        return self.tariff.charge(self.kind, self.p, until - self.began)


def joined(pilots: Sequence[PilotAhead], slots: int) -> list[PilotAhead]:
    """The pilots, of which narrow ones are joined until they have about this number of slots together."""
    found = [pilot for pilot in pilots if 2 * pilot.slots > slots]
    groups = defaultdict[object, list[PilotAhead]](list)
    for pilot in sorted(pilots, key=lambda pilot: (pilot.start, pilot.end)):
        if 2 * pilot.slots <= slots:
            key = pilot.site, pilot.tariff, pilot.kind, pilot.unit, pilot.lead, bool(pilot.elapsed)
            groups[key].append(pilot)
    for group in groups.values():
        count = max(1, round(sum(pilot.slots for pilot in group) / slots))
        found += [
            _as_one(group[place * len(group) // count : (place + 1) * len(group) // count])
            for place in range(min(count, len(group)))
        ]
    return found


def _as_one(group: Sequence[PilotAhead]) -> PilotAhead:
    """Pilots of one kind, with their mean times."""
    count = len(group)
    return msgspec.structs.replace(
        group[0],
        pilots=sum(pilot.pilots for pilot in group),
        p=sum(pilot.p for pilot in group),
        slots=sum(pilot.slots for pilot in group),
        began=sum(pilot.began for pilot in group) / count,
        start=sum(pilot.start for pilot in group) / count,
        end=sum(pilot.end for pilot in group) / count,
        useful=sum(pilot.useful for pilot in group) / count,
        elapsed=[ran for pilot in group for ran in pilot.elapsed],
        bounds=[bound for pilot in group for bound in (pilot.bounds or (0.0,) * len(pilot.elapsed))],
    )


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """State of a bag when requests are considered."""

    now: float
    uncovered: int
    """Waiting tasks that no pilot covers."""
    waiting: int
    learners: Mapping[str, RuntimeLearner]
    """Learners by site."""
    longest_cut: Mapping[str, float]
    """Seconds that the waiting task needs that was cut latest, by site; 0: none was cut."""
    seen: KnownRuntimes
    """Runtimes of its tasks at all sites."""
    held: Sequence[PilotAhead] = ()
    """The pilots in the system."""

    def needed(self, site: str) -> float:
        """Seconds that the longest of the waiting tasks is assumed to need there."""
        return max(self.learners[site].estimate, self.longest_cut[site])


class Supply(Protocol):
    @property
    def paced(self) -> bool:
        """Whether requests are made step by step, as tasks finish."""

    def asked(self, moment: Moment) -> list[PilotAhead]:
        """The pilots of the requests that are made then."""

    def goes_on(self, moment: Moment, pilot: PilotAhead, ages: Sequence[float]) -> bool:
        """Whether a pilot is kept for another charging unit, by how long its tasks have run."""
