"""The short form of `python -m lab.soak`: what a daemon holds, in memory and on the disk, does not grow."""

from __future__ import annotations

import gc
import tracemalloc

from tests.daemon.fake_site import FakeSite
from tests.daemon.lived_bags import counts, forget, live

WARM, BAGS = 10, 20
CONTEXT = 50_000
"""Bytes of the environment of a bag: what a daemon that held on to ended bags would pile up."""


def live_and_forget_the_fakes(site: FakeSite, context: int = 0) -> int:
    """A bag with such an environment, in bytes. The test's scheduler keeps all that it was ever asked."""
    bag = live(site, environment={"LONG": "".join(["x"] * context)})
    site.backend.orders.clear()
    site.backend.reports.clear()
    return bag


def held_by_us() -> int:
    """Bytes that our code has taken: a library that is first imported meanwhile does not count."""
    gc.collect()
    ours = tracemalloc.Filter(True, "*/adaptor/*")
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([ours]).traces)


def test_the_memory_of_a_daemon_does_not_grow_with_the_bags_that_have_ended(site: FakeSite) -> None:
    for _ in range(WARM):
        live_and_forget_the_fakes(site)
    tracemalloc.start()
    try:
        before = held_by_us()
        for _ in range(BAGS):
            live_and_forget_the_fakes(site, CONTEXT)
        after = held_by_us()
    finally:
        tracemalloc.stop()
    assert (after - before) / BAGS < CONTEXT / 10, "bytes a bag: the windows fill, no bag stays"


def test_of_forgotten_bags_only_pilots_and_their_charges_stay_in_the_journal(site: FakeSite) -> None:
    """And the explanations of the last day."""
    for _ in range(3):
        forget(site, *(live_and_forget_the_fakes(site) for _ in range(5)))
        left = {table: rows for table, rows in counts(site).items() if rows and table != "decision"}
        assert left.keys() <= {"pilot", "credit"}
        assert left["credit"] <= 3 * left["pilot"], "its entries: reserved, settled, recounted"
