from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.bagfile.scripts.values import ArraySpec, parse_array

ranges = st.tuples(st.integers(0, 500), st.integers(0, 500), st.integers(1, 50))


@given(st.lists(ranges, min_size=1, max_size=4), st.none() | st.integers(1, 99))
def test_the_indices_are_those_of_all_ranges(parts: list[tuple[int, int, int]], at_most: int | None) -> None:
    text = ",".join(f"{first}-{first + more}:{step}" for first, more, step in parts)
    spec = parse_array(text if at_most is None else f"{text}%{at_most}")
    expected = {index for first, more, step in parts for index in range(first, first + more + 1, step)}
    assert spec == ArraySpec(tuple(sorted(expected)), at_most, parts[-1][2])


def test_brackets_are_those_of_squeue() -> None:
    assert parse_array("[1-3,7]%2") == ArraySpec((1, 2, 3, 7), 2)


def test_what_sbatch_takes_beyond_its_manual() -> None:
    assert parse_array("1-3,") == ArraySpec((1, 2, 3), None)
    assert parse_array("1-3%0") == ArraySpec((1, 2, 3), None)
