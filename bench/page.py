"""The live page of a bag of 100,000 tasks: what the daemon spends on it, its bytes, its first paint."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import uvicorn

from adaptor.dashboard.feed import Feed
from adaptor.dashboard.gathering import Gatherer
from adaptor.dashboard.listening import application, bind_port
from adaptor.dashboard.page import Page, joined, sections
from bench.stopwatch import median_seconds, seconds
from bench.table import Row, timed
from tests.dashboard.browser import chromium_path, launched
from tests.dashboard.large_journal import LargeSource, write_journal
from tests.dashboard.told import NOW

TASKS = 100_000
_LOOKS = 5
_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="page-") as name:
        folder = Path(name)
        journal = write_journal(folder, TASKS)
        gatherer = Gatherer(LargeSource(journal), lambda: NOW, time.monotonic, "many tasks")
        yield timed(
            f"first page of {TASKS:,} tasks, 64 pilots: the daemon's work", seconds(gatherer.gather_soon)
        )
        yield timed("… and what ran in the pilots, once", seconds(gatherer.gather))
        yield timed("… each page after it, less what is asked rarely", median_seconds(gatherer.gather, 5))
        page = gatherer.gather()
        journal.close()
    size = len(joined(sections(page)))
    yield Row("… bytes, if all of it changes", f"{size / 1000:.0f} kB", "≤ 200 kB")
    if chromium_path() is None:
        yield Row("… in Chromium", "there is none here")
        return
    yield from _paint_rows(page)


def _paint_rows(page: Page) -> Iterator[Row]:
    """Paint times by the browser's own clock, in the best of a few visits with an empty cache."""
    listener = bind_port("127.0.0.1", 0)
    config = uvicorn.Config(
        application(Feed(_Moving(page)), lambda _: (b"", "text/plain"), token=None), log_level="error"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        with launched() as browser:
            paints, shown = [], []
            for _ in range(_LOOKS):
                visit = browser.new_context().new_page()
                visit.goto(f"http://127.0.0.1:{listener.getsockname()[1]}/")
                visit.wait_for_selector("html[data-shown]")
                paints.append(visit.evaluate(_PAINT) / 1000)
                shown.append(visit.evaluate("() => Page.first") / 1000)
                visit.context.close()
    finally:
        server.should_exit = True
        thread.join(10)
    yield timed("… first paint in Chromium", min(paints), 1.0)
    yield timed("… with all data drawn", min(shown), 1.0)


class _Moving:
    """The page, a little later each time."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def __call__(self) -> Page:
        head = msgspec.structs.replace(self._page.head, now=self._page.head.now + 2)
        self._page = msgspec.structs.replace(self._page, head=head)
        return self._page
