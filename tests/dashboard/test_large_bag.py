"""100,000 tasks: what the page is told stays small."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.dashboard.document import report_page, static_document
from adaptor.dashboard.gathering import Gatherer
from adaptor.dashboard.page import joined, sections
from tests.dashboard.large_journal import PILOTS, LargeSource, write_journal
from tests.dashboard.told import NOW

TASKS = 100_000
LARGEST_UPDATE = 200_000
"""Bytes."""


@pytest.mark.nightly  # writes 100,000 tasks
def test_a_page_of_100_000_tasks_has_200_kilobytes_at_most(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    journal = write_journal(tmp_path, TASKS)
    try:
        source = LargeSource(journal)
        page = Gatherer(source, lambda: NOW, lambda: NOW, "many").gather()
        assert len(joined(sections(page))) <= LARGEST_UPDATE
        (bag,) = page.bags
        assert bag.bag.tasks == TASKS
        (details,) = page.details
        assert sum(each.count for each in details.runtimes) == bag.bag.done
        assert details.progress[-1].done == bag.bag.done
        assert sum(each.count for each in details.failures) == bag.bag.failed
        assert {strip.pilot for strip in page.strips if strip.busy} == set(range(1, PILOTS + 1))
        held = sum(width * sum(parts) for strip in page.strips for _, _, width, parts in strip.busy)
        (wall,) = journal.connection.execute("SELECT SUM(wall) FROM attempt").fetchone()
        assert abs(held - wall) < 0.01 * wall
        assert len(static_document(report_page(source.live, 1, NOW))) < 2_000_000
    finally:
        journal.close()
