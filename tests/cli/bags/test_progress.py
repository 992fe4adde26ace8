"""The bar of a bag, at every width of a terminal."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from adaptor.cli.bags.progress import bar, bars
from tests.cli.fake_control import bag_view

counts = st.integers(0, 10**6)


@given(st.integers(40, 200), counts, counts, counts, counts, st.text(max_size=60))
def test_no_line_is_wider_than_the_terminal_and_the_share_is_always_there(
    width: int, done: int, failed: int, running: int, waiting: int, name: str
) -> None:
    tasks = done + failed + running + waiting
    bag = bag_view(done=done, failed=failed, running=running, waiting=waiting, tasks=tasks, name=name)
    lines = [line.plain for line in bars([bag], width, 2)]
    assert len(lines) in (1, 2)
    assert all(len(line) <= width for line in lines)
    assert f" {100 * (done + failed) // max(1, tasks)}%" in lines[0].replace("  ", " ")
    assert sum(lines[0].count(character) for character in "━─") >= 10


@given(st.integers(40, 200), st.lists(st.tuples(st.integers(1, 10**7), st.sampled_from("axyz")), min_size=1))
def test_the_bars_of_all_bags_are_below_each_other(width: int, some: list[tuple[int, str]]) -> None:
    bags = [
        bag_view(place * number, name=name * place, tasks=number, done=number // 2)
        for place, (number, name) in enumerate(some, 1)
    ]
    lines = [line.plain for line in bars(bags, width, 10**6)]
    drawn = [re.search(r" [━─]+ +\d+%", line) for line in lines]
    assert len({each.span() for each in drawn if each is not None}) == 1
    assert sum(each is not None for each in drawn) == len({bag.id for bag in bags})


@given(st.integers(1, 60), counts, counts, counts, counts)
def test_every_bar_has_its_cells_and_shows_what_failed(
    cells: int, done: int, failed: int, running: int, waiting: int
) -> None:
    tasks = done + failed + running + waiting
    bag = bag_view(done=done, failed=failed, running=running, waiting=waiting, tasks=tasks)
    text = bar(bag, cells)
    assert len(text) == cells
    styles = {str(span.style) for span in text.spans if span.end > span.start}
    if failed and cells * done // max(1, tasks) < cells:
        assert "red" in styles
    if tasks and done == tasks:
        assert styles == {"green"}


def test_a_name_that_is_too_long_is_cut_before_the_bar_is() -> None:
    first, second = bars([bag_view(name="x" * 80, tasks=10_000, done=6543)], 50, 2)
    assert "…" in first.plain
    assert "6,543 of 10,000 done" in second.plain


def test_a_terminal_without_unicode_gets_plain_characters() -> None:
    assert bar(bag_view(tasks=2, done=1, waiting=1), 10, ascii_only=True).plain == "#####-----"
