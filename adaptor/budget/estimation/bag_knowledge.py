"""What is known of a bag when its forecast is made: its tasks, its pilots, and what they cost. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from adaptor.budget.accounting.credits import MILLION, in_credits
from adaptor.budget.accounting.entries import Reserved
from adaptor.budget.accounting.tariffs import HOUR, Allocation, Tariff

STARTUPS_PER_UNIT = 12
"""A pilot is bought for at least so many start-ups (A²HA §4: 5 of 60 minutes)."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The time for which a pilot holds its slots; epoch seconds."""

    slots: int
    """Tasks of the bag that it can run at the same time."""
    start: float
    """When it started, or is predicted to start."""
    end: float
    """When it ends, unless it goes on."""
    last_end: float
    """When it ends at the latest."""
    unit: float
    """Its charging unit, seconds."""
    rate: float
    """Credits per second of a slot."""
    running: bool
    paid_until: float
    """Up to when it is charged already; its start while it is queued."""


class BagKnowledge(msgspec.Struct, frozen=True, kw_only=True):
    """What a forecast is made from."""

    now: float
    tasks: int
    """Those that have a result or may still have one."""
    finished: Sequence[float]
    """Runtimes in seconds; of many tasks a sample, of one in `every`."""
    every: int = 1
    running: Sequence[float]
    """Seconds for which the running tasks have run."""
    waiting: int
    pilots: Sequence[Window] = ()
    """The pilots in the system, queued and running."""
    charged: float
    """Credits so far, begun charging units of running pilots included."""
    rate: float
    """Credits per second of a slot that is still to be asked for."""
    unit: float
    """The charging unit of such a slot, seconds."""
    startup: float
    """Seconds from the start of a pilot until its first task starts, at most."""
    most: int | None = None
    """Slots that the bag can hold at the same time, at most; None: not known."""

    def gone_on(self, pilots: int) -> BagKnowledge:
        """As if so many of those that end went on as long as they can: those that end first decide first."""
        ends = sorted((each for each in self.pilots if each.end < each.last_end), key=lambda each: each.end)
        others = [each for each in self.pilots if each.end >= each.last_end] + ends[pilots:]
        going = [msgspec.structs.replace(each, end=each.last_end) for each in ends[:pilots]]
        return msgspec.structs.replace(self, pilots=others + going)

    @property
    def slots(self) -> int:
        """Tasks that the pilots in the system can run at the same time."""
        return sum(each.slots for each in self.pilots)


class PilotKnowledge(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot of the bag in the system."""

    slots: int
    """Tasks of the bag that it can run at the same time."""
    started: float | None = None
    """Epoch seconds; None while it is queued."""
    predicted_start: float | None = None
    """Epoch seconds; None where nobody has predicted it."""
    granted: float
    """Seconds from its start to its end at the latest."""
    expected: float | None = None
    """Seconds from its start until it ends unless it goes on; None: it goes on as long as it can."""
    reserved: Reserved | None = None
    """Its reservation in the ledger; None while it has none."""

    def charged(self, now: float) -> int:
        """Millionths of a credit, as if it ended now; 0 while it is queued."""
        if self.started is None or self.reserved is None:
            return 0
        return self.reserved.tariff.charge(self.reserved.kind, self.reserved.p, now - self.started)

    def window(self, now: float, rate: float, unit: float) -> Window:
        """`rate` (credits per second of a slot) and `unit` are for a pilot without a reservation."""
        start = self.started
        if start is None:
            start = now if self.predicted_start is None else max(now, self.predicted_start)
        if self.reserved is not None:
            tariff, kind = self.reserved.tariff, self.reserved.kind
            price = self.reserved.p * tariff.price(kind) / MILLION / HOUR
            rate, unit = price / max(1, self.slots), float(tariff.charging_unit)
        paid = start
        if self.started is not None and self.reserved is not None:
            paid += self.reserved.tariff.charged_seconds(now - start)
        return Window(
            slots=self.slots,
            start=start,
            end=start + (self.granted if self.expected is None else self.expected),
            last_end=start + self.granted,
            unit=unit,
            rate=rate,
            running=self.started is not None,
            paid_until=paid,
        )


class BagTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a bag."""

    total: int
    """Those that have a result or may still have one."""
    done: int
    runtimes: Sequence[float]
    """Seconds, of one finished task in `every` (see `RuntimeSample`)."""
    every: int = 1
    started: Sequence[float]
    """Epoch seconds, of each running task."""
    processors: int = 1
    """Of each task."""


def bag_knowledge(
    tasks: BagTasks,
    pilots: Sequence[PilotKnowledge],
    used: int,
    tariffs: Iterable[Tariff],
    kind: Allocation,
    startup: float,
    now: float,
    most: int | None = None,
) -> BagKnowledge:
    """What is known of a bag now.

    Args:
        used: millionths of a credit that the bag's ended pilots were charged.
        tariffs: of the sites at which it may run, at least one; the cheapest counts.
        startup: seconds from the start of a pilot until its first task starts, at most.
        most: slots that the bag can hold at the same time.
    """
    price, charging_unit = min((each.price(kind), each.charging_unit) for each in tariffs)
    rate, unit = tasks.processors * price / MILLION / HOUR, float(charging_unit)
    return BagKnowledge(
        now=now,
        tasks=tasks.total,
        finished=tasks.runtimes,
        every=tasks.every,
        running=[max(0.0, now - start) for start in tasks.started],
        waiting=max(0, tasks.total - tasks.done - len(tasks.started)),
        pilots=[each.window(now, rate, unit) for each in pilots if each.slots],
        charged=charged_so_far(used, pilots, now),
        rate=rate,
        unit=unit,
        startup=startup,
        most=most,
    )


def charged_so_far(used: int, pilots: Iterable[PilotKnowledge], now: float) -> float:
    """Credits for what has ended, and for what runs as if it ended now."""
    return in_credits(used + sum(each.charged(now) for each in pilots))
