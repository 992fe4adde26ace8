"""Time limits that must expire, but not before what they end has begun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

_LONGER = (1, 5, 25)
_Outcome = TypeVar("_Outcome")


def expired(run: Callable[[int], _Outcome], begun: Callable[[_Outcome], bool], first: int = 1) -> _Outcome:
    """Outcome of `run`, given a limit, if what the limit ended had `begun`.

    The limit is `first` seconds, and longer ones only on a machine too busy to begin anything in that time.
    """
    for factor in _LONGER:
        outcome = run(first * factor)
        if begun(outcome):
            return outcome
    pytest.fail(f"nothing had begun within {first * _LONGER[-1]} s")


def is_written(path: Path) -> bool:
    """Whether another process has written a whole line to it."""
    return path.exists() and path.read_text().endswith("\n")
