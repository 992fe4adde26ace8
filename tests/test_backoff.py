"""Waits that double after failures in a row."""

from __future__ import annotations

from adaptor.backoff import Backoff


def test_waits_double_up_to_the_most_and_a_success_ends_them() -> None:
    backoff = Backoff(first=30, most=100)
    waits = []
    for _ in range(4):
        backoff.failed(1000.0, "refused")
        waits.append(backoff.until - 1000.0)
    assert waits == [30, 60, 100, 100]
    assert backoff.waiting(1099.0)
    assert not backoff.waiting(1100.0)
    backoff.succeeded()
    assert not backoff.waiting(1000.0)


def test_some_failures_may_be_tolerated() -> None:
    backoff = Backoff(first=60, most=3600, tolerated=2)
    for _ in range(2):
        backoff.failed(0.0, "idle")
        assert not backoff.waiting(0.0)
    backoff.failed(0.0, "idle")
    assert backoff.waiting(59.0)


def test_failures_for_days_keep_the_longest_wait() -> None:
    backoff = Backoff(first=2, most=30)
    for _ in range(5000):
        backoff.failed(1000.0, "unreachable")
    assert backoff.until == 1030.0
