"""The live display of bags on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from adaptor import views
from adaptor.cli.follow import Overview
from adaptor.cli.progress import Pace, counts, pilot_notes, rate_text, title
from adaptor.cli.words import duration, pilots_line


def display(snapshots: Iterable[Overview]) -> Iterator[Overview]:
    """Pass the snapshots on, and show each: a bar for every bag, a line for its numbers, one for pilots."""
    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[counts]}", markup=False),
    )
    rows = _Rows(bars)
    with Live(bars, refresh_per_second=4) as live:
        for snapshot in snapshots:
            for bag in snapshot.bags:
                rows.show(bag, snapshot.time)
            below = [pilots_line(snapshot.pilots), *pilot_notes(snapshot.pilots)]
            live.update(Group(bars, Text("\n".join(below))), refresh=snapshot.ended)
            yield snapshot


class _Rows:
    """One bar for each bag."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._rows: dict[int, TaskID] = {}
        self._paces: dict[int, Pace] = {}

    def show(self, bag: views.BagView, now: float) -> None:
        if bag.id not in self._rows:
            self._rows[bag.id] = self._bars.add_task(title(bag), total=bag.tasks, counts="")
            self._paces[bag.id] = Pace()
        ended = bag.done + bag.failed + bag.cancelled
        pace = self._paces[bag.id]
        pace.add(now, ended)
        self._bars.update(self._rows[bag.id], completed=ended, counts=_numbers(bag, pace.rate))


def _numbers(bag: views.BagView, rate: float) -> str:
    parts = [counts(bag)]
    if rate > 0 and bag.state == "running":
        parts.append(rate_text(rate))
        parts.append(f"about {duration((bag.waiting + bag.running) / rate)} left")
    return ", ".join(part for part in parts if part)
