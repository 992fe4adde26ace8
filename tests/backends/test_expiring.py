"""A limit is longer only where nothing had begun when it expired."""

from __future__ import annotations

import pytest

from tests.backends.expiring import expired


def test_the_first_limit_in_which_something_had_begun_counts() -> None:
    tried: list[int] = []

    def run(limit: int) -> int:
        tried.append(limit)
        return limit

    assert expired(run, lambda limit: limit >= 10, first=2) == 10
    assert tried == [2, 10]
    with pytest.raises(pytest.fail.Exception, match="nothing had begun within 50 s"):
        expired(run, lambda _: False, first=2)
