"""The live display of bags on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from adaptor import api
from adaptor.cli.follow import Overview
from adaptor.cli.progress import counts, pilot_notes, title
from adaptor.cli.sentences import end_words
from adaptor.cli.words import pilots_line


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
                rows.show(bag)
            below = [*_ends(snapshot), pilots_line(snapshot.pilots), *pilot_notes(snapshot.pilots)]
            live.update(Group(bars, Text("\n".join(below))), refresh=snapshot.ended)
            yield snapshot


class _Rows:
    """One bar for each bag."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._rows: dict[int, TaskID] = {}

    def show(self, bag: api.BagView) -> None:
        if bag.id not in self._rows:
            self._rows[bag.id] = self._bars.add_task(title(bag), total=bag.tasks, counts="")
        ended = bag.done + bag.failed + bag.cancelled
        self._bars.update(self._rows[bag.id], completed=ended, counts=counts(bag))


def _ends(snapshot: Overview) -> list[str]:
    """When bags will be done. A line of its own: beside the numbers it would leave no room for the bar."""
    ahead = ((bag.id, bag.forecast) for bag in snapshot.bags if bag.state == "running" and bag.forecast)
    return [f"bag {number}: {words}" for number, each in ahead if (words := end_words(each, snapshot.time))]
