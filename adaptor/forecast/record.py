"""Record of forecasts that held: the forecast of a bag that is judged, and the bags that count. Pure.

A forecast is made again all the time, and the later it is made, the easier it is. So one forecast of each bag
is judged, its first: that of the first step of the daemon after the submission, mostly before any task has
run. For a bag that pays, this is the first step at which enough tasks have finished for its cost to be
shown, and a pilot of the bag is in the system, so that it names both a cost and an end. It cannot be chosen:
it is made in any case, and written down before its outcome is known. It is the hardest that users are shown,
and the one that they plan by. Each bag counts once, as its forecasts err together.

A bag does not count

* if its user changed it after that forecast (`UserChange`): the ended bag is not the one that was forecast;
* if more than half of its tasks had finished by then (`LATEST`), because they ran all at once, or while no
  daemon ran: such forecasts hold nearly always.

Whatever else happens counts: lost nodes, failing tasks, a daemon that was away, a changed configuration and
tasks that differ along the order of their file meet those who plan by a forecast, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from statistics import NormalDist

import msgspec

from adaptor.model import Estimate, UserChange

LATEST = 0.5  # the share of finished tasks up to which a first forecast counts
LATE = "forecast made late"  # why a bag does not count whose first forecast was made after that


class FirstForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast of a bag that is judged. Times are epoch seconds, costs credits."""

    made: float
    finished: int
    """Tasks with a result by then."""
    tasks: int
    """Tasks that had a result by then, or could still get one."""
    cost: Estimate | None
    """Forecast cost in credits; None: the bag does not pay."""
    end: Estimate


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a bag. Times are epoch seconds, costs credits."""

    cost: float | None
    """Cost in credits; None: a pilot of the bag is not settled."""
    end: float | None
    """Epoch seconds of the end; None: the bag runs."""
    change: UserChange | None
    """Last change by its user between its submission and its end; None: none."""
    changed: float | None
    """Epoch seconds of that change."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A first forecast and what came."""

    first: FirstForecast
    outcome: Outcome

    @property
    def not_counted(self) -> str:
        """Why the bag does not count, whatever comes of it; empty: it counts."""
        outcome, first = self.outcome, self.first
        if outcome.change is not None and outcome.changed is not None and outcome.changed >= first.made:
            return outcome.change
        return LATE if first.finished > LATEST * first.tasks else ""

    @property
    def cost_held(self) -> bool | None:
        """Whether the cost lies in its interval; None: it is not known, or the bag does not count."""
        cost = self.first.cost
        if cost is None or self.not_counted or self.outcome.cost is None or self.outcome.end is None:
            return None
        return cost.holds(self.outcome.cost)

    @property
    def end_held(self) -> bool | None:
        """Whether the end lies in its interval; None: it is not known, or the bag does not count."""
        if self.not_counted or self.outcome.end is None:
            return None
        return self.first.end.holds(self.outcome.end)


class Share(msgspec.Struct, frozen=True):
    """Number of forecasts that held, and the share of all such forecasts that this suggests."""

    held: int
    value: float
    """Share of the counted forecasts that held, 0 to 1."""
    low: float
    """Low end of the 95 % confidence interval."""
    high: float


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Record of the first forecasts of bags."""

    bags: int
    """Number of bags that are counted."""
    cost: Share | None
    """Forecasts of the cost that held; None: no bag is counted."""
    end: Share | None
    not_counted: dict[str, int]
    """Ended bags with a forecast that are not counted, by reason."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Counts from which a record is made."""

    counted: int = 0
    costed: int = 0
    """Bags whose cost was forecast."""
    cost_held: int = 0
    end_held: int = 0
    not_counted: dict[str, int] = {}
    """Number of bags by reason."""

    def plus(self, other: Tally) -> Tally:
        return Tally(
            counted=self.counted + other.counted,
            costed=self.costed + other.costed,
            cost_held=self.cost_held + other.cost_held,
            end_held=self.end_held + other.end_held,
            not_counted=dict(Counter(self.not_counted) + Counter(other.not_counted)),
        )


def tally_of(forecasts: Iterable[Judged]) -> Tally:
    """Over all bags that have ended and whose cost is known."""
    ended = [judged for judged in forecasts if judged.outcome.end is not None]
    counted = [
        judged
        for judged in ended
        if judged.end_held is not None and (judged.first.cost is None or judged.cost_held is not None)
    ]
    costed = [judged for judged in counted if judged.cost_held is not None]
    return Tally(
        counted=len(counted),
        costed=len(costed),
        cost_held=sum(bool(judged.cost_held) for judged in costed),
        end_held=sum(bool(judged.end_held) for judged in counted),
        not_counted=dict(Counter(judged.not_counted for judged in ended if judged.not_counted)),
    )


def record_of(forecasts: Iterable[Judged], past: Tally | None = None) -> Record:
    """The record over all bags that have ended and whose cost is known; `past`: forgotten ones."""
    tally = tally_of(forecasts).plus(past or Tally())
    return Record(
        bags=tally.counted,
        cost=_share(tally.cost_held, tally.costed),
        end=_share(tally.end_held, tally.counted),
        not_counted=tally.not_counted,
    )


def _share(held: int, bags: int) -> Share | None:
    if not bags:
        return None
    return Share(held, held / bags, *wilson(held / bags, bags))


def wilson(share: float, trials: float, error: float = 0.05) -> tuple[float, float]:
    """The interval around a share (Wilson 1927), which misses the true one this often.

    Args:
        share: of the trials, 0 to 1.
        trials: independent ones, above 0.
        error: of the interval.
    """
    z = NormalDist().inv_cdf(1 - error / 2)
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    return min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half))
