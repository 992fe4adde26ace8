"""The list of bags in a browser: one line each where they are many, folded, and searched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from adaptor.api import BagCounts, BagView, Totals
from adaptor.dashboard.document import static_document
from adaptor.dashboard.gathering import Gatherer
from adaptor.dashboard.page import BagRow
from tests.cli.fake_control import bag_view, running_bag
from tests.dashboard.browser import chromium
from tests.dashboard.told import NOW, Told

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def bags(count: int) -> list[BagView]:
    """A third of them runs, a third waits, a third has ended."""
    kinds = (
        lambda id: running_bag(id, name=f"sweep-{id}"),
        lambda id: running_bag(id, name=f"fit-{id}", running=0, done=0, failed=0, waiting=10),
        lambda id: bag_view(id, name=f"old-{id}"),
    )
    return [kinds[id % 3](id) for id in range(1, count + 1)]


NOTHING = BagCounts()


def document(count: int, left_out: BagCounts = NOTHING, failed: int = 0) -> str:
    """`failed`: of the bags that have ended, that many have failures."""
    page = Gatherer(Told(), lambda: NOW, lambda: NOW, "bags").gather()
    rows = [BagRow(bag=bag, credits=None) for bag in reversed(bags(count))]
    ended = [place for place, row in enumerate(rows) if row.bag.ended is not None]
    for number, place in enumerate(ended):
        fails = 2 if number < failed else 0
        bag = msgspec.structs.replace(rows[place].bag, failed=fails, state="failed" if fails else "done")
        rows[place] = msgspec.structs.replace(rows[place], bag=bag)
    head = msgspec.structs.replace(page.head, static=True)
    return static_document(msgspec.structs.replace(page, head=head, bags=rows, left_out=left_out, details=[]))


def shown(browser: Browser, folder: Path, text: str, width: int = 1200) -> Page:
    file = folder / "page.html"
    file.write_text(text, encoding="utf-8")
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    page.goto(file.as_uri())
    page.wait_for_function("() => document.documentElement.dataset.shown")
    return page


@pytest.mark.parametrize("width", [1200, 390])
def test_many_bags_have_a_line_each_and_those_that_wait_or_ended_are_folded(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    left_out = BagCounts(running=3, waiting=110, ended=170, failed=4)
    page = shown(browser, tmp_path, document(30, left_out, failed=2), width)
    visible = page.locator(".bag:visible")
    assert visible.count() == 10, "those that run"
    assert page.locator("#bags summary").all_inner_texts() == [
        "120 wait; the newest 10 are here, all: adaptor status all",
        "180 ended, 6 with failures; the newest 10 are here, all: adaptor status all",
    ]
    assert page.locator("#bags summary .bad").all_inner_texts() == ["6 with failures"]
    assert "3 more bags run: adaptor status all" in page.inner_text("#bags")
    first = visible.first
    assert first.locator(".name").inner_text() == "30sweep-30"
    assert first.locator(".counts").inner_text().startswith("4 of ")
    whole = "each => each.scrollWidth <= each.clientWidth"
    assert first.locator(".name").evaluate(whole), "the name is not cut"
    tallest = max(box["height"] for each in visible.all() if (box := each.bounding_box()))
    assert tallest < (40 if width > 1000 else 70)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("#bags summary").first.click()
    assert visible.count() == 20


def test_a_bag_is_found_by_its_name_or_number(browser: Browser, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, document(30))
    page.fill("#find", "FIT-1")
    assert page.locator(".bag:visible .name").all_inner_texts() == [
        "19fit-19",
        "16fit-16",
        "13fit-13",
        "10fit-10",
        "1fit-1",
    ]
    page.fill("#find", "nothing")
    assert "No bag is named nothing" in page.inner_text("#bags")


def test_few_bags_are_neither_folded_nor_searched(browser: Browser, tmp_path: Path) -> None:
    page = shown(browser, tmp_path, document(3))
    assert page.locator(".bag:visible").count() == 3
    assert page.locator("#bags summary").count() == 0
    assert not page.locator("#find").is_visible()


def test_a_reason_of_no_site_begins_with_what_it_is_about(browser: Browser, tmp_path: Path) -> None:
    page = Gatherer(Told(), lambda: NOW, lambda: NOW, "bags").gather()
    line = msgspec.structs.replace(page.why[0], site="", subject="bag 17")
    head = msgspec.structs.replace(page.head, static=True)
    found = shown(browser, tmp_path, static_document(msgspec.structs.replace(page, head=head, why=[line])))
    assert found.inner_text("#why .about") == "bag 17"


def test_bags_that_end_before_and_bags_in_the_same_pilots_are_named(browser: Browser, tmp_path: Path) -> None:
    page = Gatherer(Told(), lambda: NOW, lambda: NOW, "bags").gather()
    bag = running_bag(9, running=0, done=0, waiting=0, blocked=10, awaits=[5, 7])
    sums = Totals(
        requests=1,
        paid=90.0,
        used=3.0,
        used_by_others=60.0,
        others=[4],
        wasted=27.0,
        turnaround=None,
        first_result=None,
    )
    rows = [BagRow(bag=bag, credits=None)]
    told = msgspec.structs.replace(page, bags=rows, totals=sums, details=[])
    text = static_document(
        msgspec.structs.replace(told, head=msgspec.structs.replace(page.head, static=True))
    )
    found = shown(browser, tmp_path, text)
    assert found.inner_text("#bags .end") == "waits for bags 5, 7"
    assert "used by bag 4" in found.inner_text("#totals")
