"""Names of nodes in a short list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.slurm.fields import expand, fold


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("n1 n2 n3 n7", "n[1-3,7]"),
        ("n01 n02 n1", "n1,n[01-02]"),
        ("gpu login1", "login1,gpu"),
        ("r1c1 r1c2 r2c1", "r1c[1-2],r2c1"),
        ("", ""),
    ],
)
def test_lists(names: str, expected: str) -> None:
    assert fold(names.split()) == expected


@given(st.sets(st.from_regex(r"[a-c]{1,2}(-[a-c])?[0-9]{0,4}", fullmatch=True)))
def test_what_is_folded_can_be_taken_apart_again(names: set[str]) -> None:
    assert sorted(expand(fold(names))) == sorted(names)
