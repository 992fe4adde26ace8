"""`python -m bench.open_bags`: appending to an open bag, and how soon a program hears of the end of tasks."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.client.bags import Client
from bench.private_daemon import PrivateDaemon, private_daemon
from bench.stopwatch import seconds
from bench.table import Row, show

TASKS = 10_000
PARTS = (10, 100, 1000)
"""Tasks in one append."""
ROUNDS = 50


def rows() -> Iterator[Row]:
    with private_daemon(2) as place, Client(Path(place.environment["ADAPTOR_DIR"])) as client:
        task = TaskInput(["/bin/true"])
        for part in PARTS:
            bag = client.open_bag(_spec(place))
            took = seconds(lambda: [client.append(bag, [task] * part) for _ in range(TASKS // part)])  # noqa: B023
            client.cancel(bag)
            target = "≥ 20,000/s" if part == PARTS[-1] else ""
            yield Row(f"{TASKS:,} tasks, {part} in one append", f"{TASKS / took:,.0f} tasks/s", target)
        bag = client.open_bag(_spec(place), [task])
        since = client.events({bag: 0})[0].last
        times = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            client.append(bag, [task])
            since = client.events({bag: since})[0].last
            times.append(time.perf_counter() - began)
        client.cancel(bag)
        yield Row(
            "from an append to the event of its end, one task", f"{1000 * statistics.median(times):.1f} ms"
        )


def _spec(place: PrivateDaemon) -> BagSpec:
    return BagSpec(name="open", cwd=str(place.folder), output=str(place.folder / "out-{bag}"), environment={})


if __name__ == "__main__":
    show("Open bags", rows())
