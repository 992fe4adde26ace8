"""Expressions over features as sbatch reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.slurm.placing.features import parse_features

NODES = {"n1": {"old", "slow"}, "n2": {"old"}, "n3": {"new"}, "n4": {"new", "fast"}}


def nodes_of(text: str) -> list[str]:
    fits = parse_features(text).fits
    return [name for name, features in NODES.items() if fits(features)]


@pytest.mark.parametrize(
    ("text", "expected", "same"),
    [
        ("old", "n1 n2", False),
        ("old&slow", "n1", False),
        ("old,slow", "n1", False),
        ("slow|fast", "n1 n4", False),
        ("(slow|fast)&new", "n4", False),
        ("slow|fast&new", "n4", False),  # from the left
        ("[old|new]", "n1 n2 n3 n4", True),
        ("[(old&slow)|fast]", "n1 n4", True),
        ("[old*2&fast*1]", "n1 n2 n4", True),
        ("slow*1&fast*1", "n1 n4", True),
        ("new * 2".replace(" ", ""), "n3 n4", True),
        ("gold", "", False),
        (" old & slow ", "n1", False),
    ],
)
def test_expressions(text: str, expected: str, same: bool) -> None:
    assert nodes_of(text) == expected.split()
    assert parse_features(text).same is same


@pytest.mark.parametrize(
    "text", ["", "a&", "&a", "(a", "a)", "[a", "a b", "a||b", "(" * 99 + "a" + ")" * 99, "a" * 3000]
)
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(ValueError, match=r"expression|brackets|too long"):
        parse_features(text)


@given(st.text(alphabet="ab&|,()[]*12 ", max_size=30))
def test_any_text_is_an_expression_or_a_value_error(text: str) -> None:
    try:
        found = parse_features(text)
    except ValueError:
        return
    assert found.fits({"a", "b"}) in (True, False)
