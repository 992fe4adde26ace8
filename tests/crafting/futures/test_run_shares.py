"""Which shares of their limits local jobs run, learned from looks at the queue."""

from __future__ import annotations

import pytest

from adaptor.crafting.futures.run_shares import MOST, RunShares
from adaptor.model import PendingJob, QueueState, RunningJob


def look(shares: RunShares, now: float, running: dict[str, float], pending: dict[str, float]) -> None:
    shares.looked(
        QueueState(
            now=now,
            processors=8,
            running=tuple(RunningJob(id, 1, end) for id, end in running.items()),
            pending=tuple(PendingJob(id, 1, tr) for id, tr in pending.items()),
        )
    )


def learned(shares: RunShares) -> list[float]:
    """Those that are not assumed."""
    assumed = [(place + 0.5) / 8 for place in range(8)]
    return [each for each in shares.known if each not in assumed]


def test_a_job_that_ends_before_its_limit_teaches_its_share() -> None:
    shares = RunShares()
    look(shares, 0.0, {}, {"a": 1000.0})
    look(shares, 10.0, {"a": 1005.0}, {})
    assert learned(shares) == []
    look(shares, 200.0, {"a": 1005.0}, {})
    look(shares, 210.0, {}, {})
    assert learned(shares) == [pytest.approx(0.2)]
    assert shares.since("a") is None


def test_a_job_whose_limit_nobody_saw_teaches_nothing_but_is_followed() -> None:
    shares = RunShares()
    look(shares, 0.0, {"a": 500.0}, {})
    look(shares, 100.0, {"a": 500.0}, {})
    assert shares.seen_since() == {"a": 0.0}
    look(shares, 200.0, {}, {})
    assert learned(shares) == []


def test_a_job_that_vanishes_from_the_queue_without_running_teaches_nothing() -> None:
    shares = RunShares()
    look(shares, 0.0, {}, {"a": 100.0})
    look(shares, 10.0, {}, {})
    look(shares, 20.0, {}, {})
    assert learned(shares) == []


def test_an_older_look_teaches_nothing_and_only_the_newest_are_kept() -> None:
    shares = RunShares()
    for number in range(2 * MOST):
        look(shares, 10.0 * number, {f"j{number}": 10.0 * number + 20}, {f"j{number + 1}": 20.0})
    assert len(learned(shares)) == MOST
    before = shares.known
    look(shares, 5.0, {}, {})
    assert shares.known == before


def test_a_copy_goes_its_own_way() -> None:
    shares = RunShares()
    look(shares, 0.0, {}, {"a": 100.0})
    look(shares, 10.0, {"a": 105.0}, {})
    twin = shares.copy()
    look(shares, 60.0, {}, {})
    assert learned(twin) == []
    assert twin.since("a") == 5.0
