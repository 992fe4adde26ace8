"""Run shares by user and limit: what a history says, and what of it may be written down."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.futures.run_shares import FEWEST, KEPT, Ran, RunShares
from adaptor.model import EndedJob, PendingJob, QueueState, RunningJob


def history(user: str, limit: float, share: float, jobs: int = 10) -> list[EndedJob]:
    return [EndedJob(user, limit, share * limit)] * jobs


def test_the_history_of_a_user_and_a_limit_goes_before_that_of_the_user_and_of_all() -> None:
    shares = RunShares(salt=b"s")
    shares.recall(
        [*history("ann", 600, 0.1), *history("ann", 7200, 0.9), *history("bob", 600, 0.5, FEWEST - 1)]
    )

    def median(user: str, limit: float | None) -> float:
        found = shares.of_user(user, limit)
        return found[len(found) // 2]

    assert median("ann", 600) == 0.1
    assert median("ann", 7200) == 0.9
    assert shares.of_user("ann", 1234) == shares.of_user("ann", None), "all of hers"
    for user in ("bob", "eve", ""):
        assert shares.of_user(user, 600) == shares.known


def test_a_running_job_is_learned_from_whose_limit_the_scheduler_tells() -> None:
    shares = RunShares()
    running = QueueState(
        now=100.0,
        processors=4,
        running=(RunningJob("a", 1, 1000.0), RunningJob("ours", 1, 1000.0)),
        owners={"a": "ann", "ours": "me"},
        limits={"a": 1000.0, "ours": 1000.0},
    )
    shares.looked(running, own={"ours"})
    assert shares.since("a") == 0.0
    shares.looked(QueueState(now=300.0, processors=4))
    assert shares.take_new() == (Ran(shares.hashed("ann"), 1000, 0.2),), "nothing of ours"
    assert shares.take_new() == ()


def test_a_job_that_turns_out_to_be_ours_teaches_nothing() -> None:
    """It is seen to wait before the answer of the submit command says which it is."""
    shares = RunShares()
    shares.looked(QueueState(now=0.0, processors=4, pending=(PendingJob("7", 1, 100.0),)))
    shares.looked(QueueState(now=10.0, processors=4, running=(RunningJob("7", 1, 110.0),)), own={"7"})
    shares.looked(QueueState(now=20.0, processors=4), own=())
    assert shares.take_new() == ()


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_a_user_is_known_by_a_hash_that_needs_the_salt(one: str, other: str) -> None:
    mine, yours = RunShares(salt=b"mine"), RunShares(salt=b"yours")
    assert mine.hashed(one) != yours.hashed(one)
    assert (mine.hashed(one) == mine.hashed(other)) == (one == other)
    mine.recall([EndedJob(one, 60.0, 30.0)])
    (kept,) = mine.take_new()
    assert kept == Ran(mine.hashed(one), 60, 0.5)
    again = RunShares([kept] * FEWEST, salt=b"mine")
    assert again.of_user(one, 60.0).count(0.5) >= FEWEST, "and is known again after a restart"


def test_each_job_of_a_queue_gets_the_shares_of_its_user() -> None:
    shares = RunShares()
    shares.recall(history("ann", 600, 0.1))
    queue = QueueState(
        now=0.0,
        processors=4,
        running=(RunningJob("r", 1, 500.0), RunningJob("x", 1, 500.0)),
        pending=(PendingJob("p", 1, 600.0),),
        owners={"r": "ann", "p": "ann", "gone": "ann", "x": "bob"},
        limits={"r": 600.0},
    )
    found = shares.by_job(queue)
    assert found.keys() == {"r", "p", "x"}
    assert found["r"] == found["p"] == shares.of_user("ann", 600.0)
    assert found["x"] == shares.known


def test_what_lies_is_kept_within_bounds() -> None:
    shares = RunShares()
    shares.recall(
        [EndedJob("ann", 60.0, 999.0), EndedJob("ann", float("inf"), 1.0), EndedJob("ann", 0.0, 5.0)]
    )
    assert [each.share for each in shares.take_new()] == [1.0]
    shares.recall(history("ann", 60.0, 0.5, KEPT + 5))
    assert len(shares) == KEPT
