"""Record of each forecast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from adaptor.forecast.calibration import Kind, Raw
from adaptor.model import Estimate
from adaptor_experiments.forecasts.replayed import Case
from adaptor_experiments.forecasts.site_run import Outcome

_NONE = Estimate(math.nan, math.nan, math.nan)
What = Literal["cost", "end"]
WHATS: tuple[What, ...] = ("cost", "end")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A forecast and what came; seconds since the submission, credits."""

    where: str
    """The trace, or the way of buying."""
    bag: str
    """The kind of bag."""
    number: int
    tasks: int
    hint: bool = False
    """Whether its user said what a task takes."""
    moment: str
    """Share of the tasks that had finished when it was made."""
    at: float
    end: float
    end_low: float
    """Low end of the interval, like the other ends; NaN: no end was seen."""
    end_value: float
    end_high: float
    instant: float = math.nan
    """Submission of the bag, seconds of the trace; NaN: on none."""
    kind: Kind = "late"
    """Kind of the forecast of the end."""
    unit: float = math.nan
    """Unit of its `Raw`; NaN: no end was seen."""
    raw_low: float = math.nan
    """Low end of the simulated interval."""
    raw_high: float = math.nan
    cost: float = math.nan
    """NaN: the bag does not pay."""
    cost_low: float = math.nan
    cost_value: float = math.nan
    cost_high: float = math.nan
    pace: float = math.nan
    """The end by the rate of the last half minute; NaN: nothing finished."""
    planned: float = math.nan
    """End of the bag's last request by its planned start and its limit; NaN: there is none."""

    @property
    def foreseen(self) -> bool:
        """Whether an end was seen."""
        return not math.isnan(self.unit)

    @property
    def case(self) -> Case:
        """The forecast of the end and what came; of a row with an instant and an end that was seen."""
        ends = Estimate(self.raw_low, self.end_value, self.raw_high)
        raw = Raw(kind=self.kind, made=self.at, unit=self.unit, ends=ends)
        return Case(site=self.where, machine=self.where, instant=self.instant, raw=raw, came=self.end)

    @property
    def left(self) -> float:
        """Seconds until the end, at least 1."""
        return max(1.0, self.end - self.at)

    def holds(self, what: What) -> bool:
        """Whether the interval holds what came."""
        if what == "cost":
            return Estimate(self.cost_low, self.cost_value, self.cost_high).holds(self.cost)
        # The simulated clock goes by whole seconds.
        return self.end_low - 1 <= self.end <= self.end_high + 1

    def width(self, what: What) -> float:
        """Width of the interval, as a share of the cost, or of the time from the submission to the end."""
        if what == "cost":
            return (self.cost_high - self.cost_low) / self.cost
        return (self.end_high - self.end_low) / self.end


def rows_of(outcome: Outcome, moments: Mapping[int, str], **bag: Any) -> list[Row]:
    """The forecasts of a bag at the moments, by finished tasks; `bag`: what else the rows hold."""
    found = []
    for told, moment in zip(outcome.told, moments.values(), strict=False):
        end, cost, raw = told.forecast.end or _NONE, told.forecast.cost or _NONE, told.forecast.raw
        if raw is not None:
            bag |= {"kind": raw.kind, "unit": raw.unit, "raw_low": raw.ends.low, "raw_high": raw.ends.high}
        found.append(
            Row(
                **bag,
                moment=moment,
                at=told.at,
                end=outcome.end,
                end_low=end.low,
                end_value=end.value,
                end_high=end.high,
                cost_low=cost.low,
                cost_value=cost.value,
                cost_high=cost.high,
                pace=told.pace,
                planned=told.planned,
            )
        )
    return found


def with_intervals(rows: Sequence[Row], intervals: Sequence[Estimate]) -> list[Row]:
    """The same forecasts with other intervals of their ends."""
    return [
        msgspec.structs.replace(row, end_low=found.low, end_value=found.value, end_high=found.high)
        for row, found in zip(rows, intervals, strict=True)
    ]


def median(values: Sequence[float]) -> float:
    """Median of the values that are numbers; NaN: none is."""
    found = sorted(value for value in values if not math.isnan(value))
    return found[len(found) // 2] if found else math.nan
