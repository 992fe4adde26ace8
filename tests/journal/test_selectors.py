"""Which bags a user means."""

from __future__ import annotations

import pytest

from adaptor.errors import UnknownBagError, UsageError
from adaptor.journal.selectors import check_selector, ids_of

KNOWN = [1, 2, 4, 7, 12]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("all", KNOWN),
        ("last", [12]),
        ("7", [7]),
        ("2-7", [2, 4, 7]),
        ("7, 1,2-4", [1, 2, 4, 7]),
        ("8-11", []),
    ],
)
def test_what_a_selector_chooses(text: str, chosen: list[int]) -> None:
    check_selector(text)
    assert ids_of(text, KNOWN) == chosen


def test_nothing_is_chosen_where_nothing_is() -> None:
    assert ids_of("all", []) == ids_of("last", []) == ids_of("1-9", []) == []


@pytest.mark.parametrize("text", ["", "x", "5-2", "1,,2", "-3", "1-", "last,1"])
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
