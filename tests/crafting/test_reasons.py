"""The sentences of requests."""

from __future__ import annotations

from adaptor.crafting.reasons import planned


def test_equal_requests_are_told_once_with_their_number() -> None:
    assert planned(["1 × 1h now"] * 3, "16:05") == "3 pilots of 1 × 1h now: done about 16:05"
    told = planned(["2 × 1h now", "6 × 3h at 14:10"], "")
    assert told == "2 × 1h now + 6 × 3h at 14:10: no end is known before tasks have ended"
    assert planned([], "16:05") == "what is there: done about 16:05"
