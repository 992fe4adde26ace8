"""A pilot that was charged, by its entries; the steps in which charges are summed. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from adaptor.budget.accounting.entries import Entry, Part, Recounted, Reserved, Settled

BILLING_STEP = 900
"""Seconds. Bills of a site in one quarter of an hour are one sum: every time zone that the IANA data base has
since 1973 differs from UTC by whole quarters, so such a step lies in one period of any calendar."""


class SettledPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that was charged, by all of its entries."""

    site: str
    area: int
    """Processor-seconds that were charged."""
    parts: tuple[Part, ...]
    """As they were recounted last."""
    billed: float
    at: float
    """When its last entry was written."""

    @classmethod
    def of(cls, reserved: Reserved, settled: Settled) -> SettledPilot:
        area = reserved.area(settled.seconds)
        return cls(site=reserved.site, area=area, parts=settled.parts, billed=settled.billed, at=settled.at)

    def recounted(self, by: Recounted) -> SettledPilot:
        return msgspec.structs.replace(self, parts=by.parts, at=max(self.at, by.at))


def settled_pilot(entries: Iterable[Entry]) -> SettledPilot | None:
    """The pilot by its entries in their order; None: it has none, or was not charged yet."""
    reserved: Reserved | None = None
    found: SettledPilot | None = None
    for entry in entries:
        if isinstance(entry, Reserved):
            reserved = entry
        elif isinstance(entry, Settled) and reserved is not None:
            found = SettledPilot.of(reserved, entry)
        elif isinstance(entry, Recounted) and found is not None:
            found = found.recounted(entry)
    return found


def billing_step(billed: float) -> float:
    """The beginning of the step in which something was billed, epoch seconds."""
    return billed // BILLING_STEP * BILLING_STEP
