"""Which bags a user means."""

from __future__ import annotations

import re

import pytest

from adaptor.errors import UnknownBagError, UsageError
from adaptor.journal.selectors import check_selector, ids_of

KNOWN = {1: "a", 2: "fit", 4: "fit", 7: "7-9", 12: "my bag"}


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("all", [*KNOWN]),
        ("last", [12]),
        ("7", [7]),
        ("2-7", [2, 4, 7]),
        ("7, 1,2-4", [1, 2, 4, 7]),
        ("8-11", []),
        ("a", [1]),
        ("fit", [4]),
        ("my bag", [12]),
    ],
)
def test_what_a_selector_chooses(text: str, chosen: list[int]) -> None:
    check_selector(text)
    assert ids_of(text, KNOWN) == chosen


def test_nothing_is_chosen_where_nothing_is() -> None:
    assert ids_of("all", {}) == ids_of("last", {}) == ids_of("1-9", {}) == []


@pytest.mark.parametrize("text", ["", " ", "5-2", "1,,2", "-3", "1-"])
def test_what_is_no_selector(text: str) -> None:
    with pytest.raises(UsageError, match="selects no bags"):
        check_selector(text)
    with pytest.raises(UsageError, match="selects no bags"):
        ids_of(text, KNOWN)


@pytest.mark.parametrize("text", ["3", "1,3", "0"])
def test_a_bag_that_is_not_there(text: str) -> None:
    with pytest.raises(UnknownBagError, match=f"there is no bag {text[-1]}; .* lists them") as unknown:
        ids_of(text, KNOWN)
    assert unknown.value.exit_code == UsageError.exit_code


@pytest.mark.parametrize(
    ("name", "hint"), [("fti", "did you mean 'fit'?"), ("lats", "'last'"), ("x,1", "write a")]
)
def test_a_name_that_no_bag_has(name: str, hint: str) -> None:
    check_selector(name)
    with pytest.raises(UsageError, match=f"no bag has the name '{name}' .*{re.escape(hint)}"):
        ids_of(name, KNOWN)
