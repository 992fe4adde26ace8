"""The compact line of waiting tasks is what a plain list would be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.scheduling import lines
from adaptor.scheduling.lines import WaitingTasks

_BEGINS = st.integers(0, 60)
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "appendleft", "extend", "take", "remove", "drop"]), st.integers(0, 99)
    ),
    max_size=60,
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the spare places of short lines are given back too."""
    monkeypatch.setattr(lines, "_PART", 4)
    monkeypatch.setattr(lines, "_LEAST_SPARE", 2)


def _step(name: str, number: int, line: WaitingTasks, plain: list[int], new: Callable[[], int]) -> None:
    place = number % len(plain) if plain else 0
    if name == "append":
        plain.append(new())
        line.append(plain[-1])
    elif name == "appendleft":
        plain.insert(0, new())
        line.appendleft(plain[0])
    elif name == "extend":
        some = [new() for _ in range(number % 7)]
        plain += some
        line.extend(some)
    elif name == "take" and plain:
        assert line.take(place) == plain.pop(place)
    elif name == "remove" and plain:
        line.remove(plain.pop(place))
    elif name == "drop":
        unwanted = {task for task in plain if task % (2 + number % 3) == 0}
        line.drop(unwanted.__contains__, len(unwanted))
        plain[:] = [task for task in plain if task not in unwanted]


@given(_BEGINS, _STEPS)
def test_any_steps_leave_it_as_a_plain_list(begin: int, steps: list[tuple[str, int]]) -> None:
    line, plain = WaitingTasks(range(begin)), list(range(begin))
    numbers = iter(range(begin, 10_000))
    for name, number in steps:
        _step(name, number, line, plain, lambda: next(numbers))
        assert list(line) == plain
        assert len(line) == len(plain)
        assert bool(line) == bool(plain)
        assert list(line.head(number)) == plain[:number]
        assert [line[place] for place in range(len(plain))] == plain


def test_what_does_not_wait_cannot_be_removed() -> None:
    line = WaitingTasks([1, 2])
    line.take(0)
    with pytest.raises(ValueError, match="not in array"):
        line.remove(1)
