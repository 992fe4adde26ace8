"""Bags that pay for their pilots, the tariffs, and the forecasts on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.model import Preference
from adaptor.units import format_duration
from adaptor_experiments.a2ha.bags import DEMO, IMAGE, NORMAL, OTHERS, TESTING, Kind, runtimes
from adaptor_experiments.forecasts.row import Row, rows_of
from adaptor_experiments.forecasts.site_run import CheckedSite, submitted


class CheckedBag(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of bag file, and how its user has it run."""

    key: str
    title: str
    runtimes: Kind
    sort: bool = False
    """The tasks are in the file by their runtimes, the shortest first; else at random."""
    order: Literal["random", "file"] | None = None
    """The option of the bag (`docs/bags.md`); None: its user has not named one."""

    @property
    def promised(self) -> bool:
        """Whether the forecast claims to hold: the first tasks are a random sample of all."""
        return not (self.sort and self.order == "file")


SORTED = CheckedBag(key="sorted", title="sorted", runtimes=IMAGE, sort=True)
SORTED_IN_FILE_ORDER = CheckedBag(
    key="sorted-file", title="sorted, order=file", runtimes=IMAGE, sort=True, order="file"
)
SHUFFLED = CheckedBag(key="shuffled", title="shuffled, order=file", runtimes=IMAGE, order="file")
"""The same tasks in all three."""
BAGS = (
    SORTED,
    SORTED_IN_FILE_ORDER,
    SHUFFLED,
    *(CheckedBag(key=kind.key, title=kind.title, runtimes=kind) for kind in (NORMAL, TESTING, DEMO, *OTHERS)),
)
"""The forecast was adjusted with most of these bags at seed 1 in sight; other seeds draw other runtimes."""
BAG = {each.key: each for each in BAGS}


class Way(msgspec.Struct, frozen=True):
    """Way in which a bag pays for its pilots."""

    prefer: Preference | None
    """Preference; None: a budget alone."""
    unit: int
    """Charging unit, seconds."""

    @property
    def site(self) -> CheckedSite:
        return CheckedSite(tariff=Tariff(price_explicit=1.0, price_donated=1.0, charging_unit=self.unit))

    def budget(self, tasks: Sequence[float]) -> float | None:
        """Credits that a bag may cost; None: no limit."""
        work = sum(tasks) / _HOUR * self.site.tariff.price_explicit
        return None if self.prefer is not None else _ALONE * work

    @property
    def title(self) -> str:
        """`cheap, 1h`."""
        return f"{self.prefer or 'budget'}, {format_duration(self.unit)}"


WAYS = (Way("cheap", 60), Way("cheap", 3600), Way(None, 60), Way(None, 3600))
"""The orders of a bag take turns in them."""
MOMENTS = ("30", "100", "half")  # finished tasks after which the forecast is made
_AT_ONCE = 4  # orders of a piece
_ALONE = 3.0  # times the work: what a budget alone is
_HOUR = 3600.0
_STRETCHED = 200.0
"""The measured bag has tasks of less than a second, compared with which pilots would only start and end."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    orders: int = 200
    bags: tuple[str, ...] = tuple(BAG)


def bag_of(key: str, settings: Settings, order: int) -> list[float]:
    """Seconds of each task, by its place in the file."""
    bag = BAG[key]
    drawn = runtimes(bag.runtimes, settings.seed, order)
    drawn = drawn * _STRETCHED if bag.runtimes is DEMO else drawn
    return sorted(drawn.tolist()) if bag.sort else drawn.tolist()


class Piece(msgspec.Struct, frozen=True):
    """Some orders of a kind of bag."""

    bag: str
    first: int
    settings: Settings

    @property
    def name(self) -> str:
        return f"{self.bag}-{self.first}"

    @property
    def orders(self) -> range:
        return range(self.first, min(self.first + _AT_ONCE, self.settings.orders))


def pieces(settings: Settings) -> list[Piece]:
    return [
        Piece(bag, first, settings) for bag in settings.bags for first in range(0, settings.orders, _AT_ONCE)
    ]


def run_piece(piece: Piece) -> list[Row]:
    """The forecasts of some bags that pay."""
    return [row for order in piece.orders for row in _run(piece.bag, piece.settings, order)]


def _run(key: str, settings: Settings, order: int) -> list[Row]:
    tasks, way = bag_of(key, settings, order), WAYS[order % len(WAYS)]
    moments = dict(zip((30, 100, len(tasks) // 2), MOMENTS, strict=True))
    run = submitted(
        tasks,
        way.site,
        prefer=way.prefer,
        budget=way.budget(tasks),
        number=order + 1,
        order=BAG[key].order,
    )
    outcome = run.run(list(moments))
    known = {"where": way.title, "bag": key, "number": order, "tasks": len(tasks)}
    return rows_of(outcome, moments, cost=outcome.cost, **known)
