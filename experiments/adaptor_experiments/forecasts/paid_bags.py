"""The bags that pay for their pilots, and the tariffs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.model import Preference
from adaptor.units import format_duration
from adaptor_experiments.a2ha.bags import DEMO, IMAGE, NORMAL, OTHERS, TESTING, Kind, runtimes
from adaptor_experiments.forecasts.site_run import CheckedSite


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
    """How a bag pays for its pilots."""

    prefer: Preference | None
    """None: a budget alone, which caps no request until it is nearly used up."""
    unit: int
    """Charging unit, seconds."""

    @property
    def site(self) -> CheckedSite:
        return CheckedSite(tariff=Tariff(price_explicit=1.0, price_donated=1.0, charging_unit=self.unit))

    @property
    def title(self) -> str:
        """`cheap, 1h`."""
        return f"{self.prefer or 'budget'}, {format_duration(self.unit)}"


WAYS = (Way("cheap", 60), Way("cheap", 3600), Way(None, 60), Way(None, 3600))
"""The orders of a bag take turns in them."""
MOMENTS = ("30", "100", "half")  # finished tasks after which the forecast is made
_STRETCHED = 200.0
"""The measured bag has tasks of less than a second, compared with which pilots would only start and end."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    orders: int = 200
    demo: Path | None = None
    """Measured runtimes; None: those of the package."""
    bags: tuple[str, ...] = tuple(BAG)


def way_of(order: int) -> Way:
    return WAYS[order % len(WAYS)]


def bag_of(key: str, settings: Settings, order: int) -> list[float]:
    """Seconds of each task, by its place in the file.

    Raises:
        ReplayError: the measured list cannot be read.
    """
    bag = BAG[key]
    stretch = _STRETCHED if bag.runtimes is DEMO else 1.0
    drawn = runtimes(bag.runtimes, settings.seed, order, settings.demo)
    return [float(each) * stretch for each in (sorted(drawn) if bag.sort else drawn)]


def moments(tasks: int) -> dict[int, str]:
    """By finished tasks, in a bag of `tasks`."""
    return dict(zip((30, 100, tasks // 2), MOMENTS, strict=True))
