"""Free slots in a table, one line each."""

from __future__ import annotations

from collections.abc import Iterator

from adaptor import views
from adaptor.cli.table import layout
from adaptor.cli.words import clock
from adaptor.units import format_duration

_TITLES = ("processors", "start", "until", "duration", "request")


def slots_lines(site: views.SlotsView) -> Iterator[str]:
    """A title and a line for each free slot, the earliest first."""
    if not site.slots:
        yield "no processor is ever free, as the queue stands"
        return
    yield from layout(_TITLES, [_row(slot, site.observed or 0.0) for slot in site.slots])


def _row(slot: views.SlotView, now: float) -> tuple[str, ...]:
    span = "unlimited" if slot.end is None else format_duration(slot.end - slot.start)
    return (
        str(slot.processors),
        "now" if slot.start <= now else clock(slot.start, now),
        "-" if slot.end is None else clock(slot.end, now),
        span,
        "none fits" if slot.p is None or slot.tr is None else f"{slot.p} × {format_duration(slot.tr)}",
    )
