"""Entries that a ledger writes down; in their order they are enough to rebuild it."""

from __future__ import annotations

import msgspec

from adaptor.budget.accounting.credits import format_credits
from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.errors import BudgetError
from adaptor.model import PriceKind
from adaptor.units import folded

BudgetKey = tuple[int | None, str | None, Calendar | None]


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The most that one bag, or one site (in each period of a calendar, or in all), may cost."""

    amount: int
    """Millionths of a credit."""
    bag: int | None = None
    site: str | None = None
    calendar: Calendar | None = None
    """Calendar of the periods; only with a site."""

    def __post_init__(self) -> None:
        """Raises BudgetError: an amount of 0 or less, or neither a bag nor a site, or both."""
        if (self.bag is None) == (self.site is None) or (self.calendar and self.site is None):
            raise BudgetError("a budget is either a bag's or a site's, and only a site's has a calendar")
        if self.amount <= 0:
            raise BudgetError(f"the budget of {self.name} must be above 0, not {format_credits(self.amount)}")

    @property
    def key(self) -> BudgetKey:
        """Key of the budget; another budget with the same key replaces it."""
        return self.bag, self.site, self.calendar

    @property
    def name(self) -> str:
        if self.bag is not None:
            return bag_name(self.bag)
        return f"site {self.site}" + (f", per {self.calendar.span}" if self.calendar else "")


NOT_SUBMITTED = 1 << 40  # number of a bag that is only planned: no real one is so high


def bag_name(*bags: int) -> str:
    """`bag 7`, `bags 7-9`; `the bag` for one that is only planned."""
    if NOT_SUBMITTED in bags:
        return "the bag"
    return f"bag{'s' * (len(bags) > 1)} {folded(bags)}"


def bag_pauses(*bags: int) -> str:
    """`bag 7 is paused`, `bags 7-9 are paused`; `the bag would pause` for one that is only planned."""
    pauses = "are paused" if len(bags) > 1 else "is paused"
    return f"{bag_name(*bags)} {'would pause' if NOT_SUBMITTED in bags else pauses}"


def larger_budget(bag: int, credits: str) -> str:
    """The command for a larger budget, or the option for a bag that is only planned."""
    return f"--budget {credits}" if bag == NOT_SUBMITTED else f"adaptor change {bag} --budget {credits}"


class JointLimit(msgspec.Struct, frozen=True, kw_only=True):
    """The most that the bags of one key may cost, and their pilots may hold, together."""

    key: str
    amount: int
    """Millionths of a credit."""
    processors: int
    """Processors of all pilots queued and running."""

    @property
    def name(self) -> str:
        return f"key {self.key}"


class Part(msgspec.Struct, frozen=True):
    """A bag's part of a reservation or a charge, in millionths of a credit."""

    bag: int
    amount: int
    wasted: int = 0
    """Part of a charge that paid for idle slots, killed attempts and losing replicas."""


class Budgeted(msgspec.Struct, frozen=True, tag="budgeted"):
    """A budget was set, or changed."""

    budget: Budget
    at: float


class Priced(msgspec.Struct, frozen=True, tag="priced"):
    """A site's prices from now on; pilots that are reserved already keep theirs."""

    site: str
    tariff: Tariff
    at: float


class Reserved(msgspec.Struct, frozen=True, kw_only=True, tag="reserved"):
    """A reservation: a pilot is about to be submitted, its request changed, or more of it is paid for."""

    pilot: int
    site: str
    p: int
    tr: int
    kind: PriceKind
    tariff: Tariff
    """The prices at which it was bought."""
    parts: tuple[Part, ...]
    at: float
    freed: int = 0
    """Processors among them that were given back before the end of the pilot."""
    freed_area: int = 0
    """Processor-seconds for which those are charged."""
    paid: int | None = None
    """Seconds since its start that are set aside so far; None: its tr, and the grace."""

    @property
    def amount(self) -> int:
        return sum(part.amount for part in self.parts)

    @property
    def lasts(self) -> int:
        """Seconds since its start that are set aside."""
        return self.tr + self.tariff.grace if self.paid is None else self.paid

    @property
    def most(self) -> int:
        """Greatest possible cost of the pilot, in millionths of a credit."""
        return self.charge(self.lasts)

    def area(self, seconds: float) -> int:
        """Processor-seconds that are charged if the pilot ends after `seconds`, in whole units."""
        return self.held * self.tariff.charged_seconds(seconds) + self.freed_area

    def charge(self, seconds: float) -> int:
        """Cost of the pilot if it ends after `seconds`, in millionths of a credit."""
        return self.tariff.charge_of_area(self.kind, self.area(seconds))

    def asking(self, p: int, tr: int) -> Reserved:
        """The reservation if the pilot asks for this."""
        return msgspec.structs.replace(self, p=p, tr=tr).paid_until(self.paid)

    def paid_until(self, seconds: int | None) -> Reserved:
        """The reservation if no more than these seconds since its start are set aside."""
        whole = seconds is None or seconds >= self.tr + self.tariff.grace
        return msgspec.structs.replace(self, paid=None if whole else seconds)

    @property
    def shares(self) -> dict[int, float]:
        """Weight of each bag in the cost."""
        return {part.bag: float(part.amount) for part in self.parts}

    @property
    def held(self) -> int:
        """Processors that the pilot holds, or will hold."""
        return max(0, self.p - self.freed)

    @property
    def gpus(self) -> float:
        """GPUs that the pilot holds."""
        return self.p * self.tariff.gpus


class Settled(msgspec.Struct, frozen=True, kw_only=True, tag="settled"):
    """A pilot ended, or was never submitted: the reservation is gone, the real time is charged."""

    pilot: int
    seconds: float
    """Seconds for which it held its processors."""
    parts: tuple[Part, ...]
    billed: float
    """The instant whose calendar period bears the charge."""
    at: float

    @property
    def amount(self) -> int:
        return sum(part.amount for part in self.parts)


class Recounted(msgspec.Struct, frozen=True, tag="recounted"):
    """New parts of a settled pilot: a result came late, and more or less of its work was useful."""

    pilot: int
    parts: tuple[Part, ...]
    """The parts as they were settled, with other wasted amounts."""
    at: float


Entry = Budgeted | Priced | Reserved | Settled | Recounted
