"""Free processors over time, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adaptor import api
from adaptor.cli.words import clock
from adaptor.errors import AdaptorError
from adaptor.figures.canvas import sheet
from adaptor.units import format_duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_SPAN = 3600.0
"""Seconds that are shown at least."""


def draw_slots(sites: Sequence[api.SlotsView], path: Path, kind: str) -> None:
    """One plot per site whose queue could be read: what is in use, what is free, and the requests.

    Raises:
        AdaptorError: matplotlib is not installed, no queue could be read, or the file cannot be written.
    """
    read = [site for site in sites if site.free]
    if not read:
        raise AdaptorError(f"{path}: there is nothing to draw: {sites[0].problem if sites else 'no site'}")
    drawn = sheet(10, 0.6 + 2.8 * len(read))
    for axes, site in zip(drawn.subplots(len(read), 1, squeeze=False)[:, 0], read, strict=True):
        _draw(axes, site)
    try:
        drawn.savefig(path, format=kind, dpi=120)
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be written: {error.strerror}") from error


def _draw(axes: Axes, site: api.SlotsView) -> None:
    now = site.free[0].time
    name = f"{site.site}/{site.partition}" if site.partition else site.site
    until = max(_LEAST_SPAN, (site.free[-1].time - now) * 1.15)
    times = [(step.time - now) / 3600 for step in site.free] + [until / 3600]
    free = [step.processors for step in site.free]
    free.append(free[-1])
    axes.fill_between(times, 0, free, step="post", color="palegreen", label="free")
    axes.fill_between(
        times, free, site.processors, step="post", color="0.8", hatch="//", edgecolor="0.6", linewidth=0,
        label="in use or planned",
    )  # fmt: skip
    for slot in site.slots:
        if slot.p is not None and slot.tr is not None and slot.start < now + until:
            place = ((slot.start - now) / 3600, slot.processors)
            text = f"{slot.p} × {format_duration(slot.tr)}"
            axes.annotate(text, place, (3, -10), textcoords="offset points", fontsize=8)
    axes.set(
        title=name,
        ylabel="processors",
        ylim=(0, site.processors),
        xlim=(0, until / 3600),
    )
    axes.set_xlabel(f"hours after {clock(now, now)}; in each slot the largest request that takes it")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
