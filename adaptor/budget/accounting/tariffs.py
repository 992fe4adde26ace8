"""Cost of a pilot: processors × charged time × price, and its GPUs."""

from __future__ import annotations

import math

import msgspec

from adaptor.budget.accounting.credits import millionths
from adaptor.budget.errors import BudgetError
from adaptor.model import PriceKind
from adaptor.resources import PerProcessor

HOUR = 3600  # seconds; the longest charging unit, and the time for which prices are given


class Tariff(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of a site (A²HA §3: time is paid in units, begun ones whole)."""

    price_explicit: float
    """Credits per processor-hour."""
    price_donated: float
    """Credits per processor-hour; never more than `price_explicit`."""
    price_gpu: float = 0.0
    """Credits per GPU-hour of formal requests; on donated nodes it is cheaper as processors are."""
    gpus: float = 0.0
    """GPUs that a pilot holds for each of its processors: it pays for them with its processors."""
    rounding: float = 1.0
    """Processors that a pilot may hold for each that it asks for; 1 as soon as it is known what it holds."""
    charging_unit: int = 1
    """Seconds, 1 to 3600: the time step that is billed."""
    grace: int = 0
    """Seconds that the scheduler may let a pilot run beyond its tr (Slurm: OverTimeLimit and KillWait).
    They are reserved too, so that even a pilot that ends late stays inside its reservation."""

    @property
    def plain(self) -> bool:
        """Whether it only counts processor-hours, as where no price is set."""
        return (self.price_explicit, self.price_donated, self.price_gpu, self.charging_unit) == (1, 1, 0, 1)

    def __post_init__(self) -> None:
        """Raises BudgetError: a value that cannot be."""
        explicit = millionths(self.price_explicit, "price_explicit (credits per processor-hour)")
        donated = millionths(self.price_donated, "price_donated (credits per processor-hour)")
        if donated > explicit:
            raise BudgetError(
                f"price_donated {self.price_donated:g} is above price_explicit {self.price_explicit:g}: "
                "time that can be taken back is not worth more"
            )
        if not (math.isfinite(self.price_gpu) and self.price_gpu >= 0):
            raise BudgetError(f"price_gpu must be a number of 0 or more, not {self.price_gpu!r}")
        if not (math.isfinite(self.gpus) and self.gpus >= 0):
            raise BudgetError(f"gpus for each processor must be a number of 0 or more, not {self.gpus!r}")
        if not (math.isfinite(self.rounding) and self.rounding >= 1):
            raise BudgetError(f"rounding must be a number of 1 or more, not {self.rounding!r}")
        if not 1 <= self.charging_unit <= HOUR:
            raise BudgetError(f"charging_unit must be from 1 s to 1 h, not {self.charging_unit} s")
        if self.grace < 0:
            raise BudgetError(f"grace must be 0 s or more, not {self.grace} s")

    def of_pilots(self, per: PerProcessor) -> Tariff:
        """Tariff of pilots that hold these resources with each processor."""
        return msgspec.structs.replace(self, gpus=per.gpus, rounding=per.held)

    @property
    def of_parts(self) -> Tariff:
        """Tariff of time that is paid for in parts: workers end with it, so there is no grace."""
        return msgspec.structs.replace(self, grace=0)

    def price(self, kind: PriceKind) -> int:
        """Millionths of a credit per processor-hour that is asked for, with all that goes with it."""
        named = self.price_explicit if kind == "explicit" else self.price_donated
        with_gpus = named * (self.rounding + self.gpus * self.price_gpu / self.price_explicit)
        return millionths(with_gpus, f"price_{kind}")

    def charged_seconds(self, seconds: float) -> int:
        """The time that is billed: begun units count whole."""
        return begun_units(seconds, self.charging_unit) * self.charging_unit

    def charge(self, kind: PriceKind, processors: int, seconds: float) -> int:
        """Millionths of a credit for `processors`, rounded up to a whole one.

        It never falls when processors or seconds grow, so a pilot that ends early costs at most what was
        reserved for it.
        """
        return self.charge_of_area(kind, processors * self.charged_seconds(seconds))

    def charge_of_area(self, kind: PriceKind, area: int) -> int:
        """Millionths of a credit for these processor-seconds, rounded up to a whole one."""
        return -(-area * self.price(kind) // HOUR)

    def reservation(self, kind: PriceKind, processors: int, tr: int) -> int:
        """The most that a request `(p, tr)` can cost, in millionths of a credit."""
        return self.charge(kind, processors, tr + self.grace)

    def affordable_processors(self, kind: PriceKind, amount: int, tr: int) -> int:
        """The most processors whose reservation for tr seconds is within the amount."""
        each = self.charged_seconds(tr + self.grace) * self.price(kind)
        return max(0, amount * HOUR // each)

    def affordable_seconds(self, kind: PriceKind, amount: int, processors: int) -> int:
        """The longest tr for which the processors can be reserved within the amount; 0 where none."""
        units = amount * HOUR // (processors * self.charging_unit * self.price(kind))
        return max(0, units * self.charging_unit - self.grace)


def begun_units(seconds: float, unit: float) -> int:
    """Charging units that have begun after `seconds`; none before 0.

    Thousandths of a second are noise of the clock and begin no unit.
    """
    return max(0, math.ceil(round(seconds, 3) / unit))


def held_seconds(started: float | None, ended: float) -> float:
    """Seconds for which a pilot held its processors; 0: it never started, or the clock was set back."""
    return 0.0 if started is None else max(0.0, ended - started)
