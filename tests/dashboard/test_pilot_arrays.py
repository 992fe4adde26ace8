"""The table of pilots in a browser: an array is one line that opens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from adaptor.dashboard.document import static_document
from adaptor.dashboard.gathering import Gatherer
from tests.cli.bags.test_pilot_table import pilot
from tests.dashboard.browser import chromium
from tests.dashboard.told import NOW, Told

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def test_an_array_is_one_line_that_opens(browser: Browser, tmp_path: Path) -> None:
    page = Gatherer(Told(), lambda: NOW, lambda: NOW, "bags").gather()
    running = {"state": "running", "started": NOW - 60.0, "used": 30.0}
    pilots = [pilot(3), *(pilot(id, 4, **(running if id < 20 else {})) for id in range(4, 44)), pilot(44)]
    head = msgspec.structs.replace(page.head, static=True)
    file = tmp_path / "page.html"
    file.write_text(static_document(msgspec.structs.replace(page, head=head, pilots=pilots, strips=[])))
    shown = browser.new_page()
    problems: list[str] = []
    shown.on("pageerror", lambda error: problems.append(str(error)))
    shown.goto(file.as_uri())
    rows = shown.locator("#pilots tbody tr")
    assert rows.count() == 3
    array = shown.locator('#pilots tr[data-array="4"]')
    words = array.inner_text()
    for said in ("4–43", "24 queued, 16 running", "40 × 1", "8m"):
        assert said in words
    array.click()
    assert rows.count() == 3 + 40
    assert shown.locator('#pilots tr[data-pilot="17"]').count() == 1
    shown.locator('#pilots tr[data-array="4"]').press("Enter")
    assert rows.count() == 3
    assert not problems
