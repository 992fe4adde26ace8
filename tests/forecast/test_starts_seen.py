"""The record of the starts of all jobs that were seen to wait."""

from __future__ import annotations

import math

import msgspec
import pytest

from adaptor.forecast import starts_seen
from adaptor.forecast.calibration import Raw
from adaptor.forecast.past_waits import PLAN_ALONE, Waiting
from adaptor.forecast.start import StartForecast
from adaptor.forecast.starts_seen import StartsSeen, is_right
from adaptor.model import Estimate, PendingJob, QueueState, RunningJob
from backends.partitions import together

NEVER = StartForecast(planned=math.inf, start=None, before=None)


def queue(now: float, waiting: str = "", **running: float) -> QueueState:
    """`running`: by job, its start; each has a limit of 100 s."""
    return QueueState(
        now=now,
        processors=8,
        pending=tuple(PendingJob(id, 1, 100.0) for id in waiting),
        running=tuple(RunningJob(id, 1, start + 100) for id, start in running.items()),
        limits=dict.fromkeys(running, 100.0),
    )


def told(low: float, value: float, high: float) -> StartForecast:
    start = Estimate(low, value, high)
    raw = Raw(kind="start", made=0.0, unit=10.0, ends=start)
    return StartForecast(planned=high, start=start, raw=raw, before=None)


def test_the_first_forecast_of_each_job_is_judged_once_when_it_runs() -> None:
    seen = StartsSeen()
    seen.forecast(queue(0.0, "abc"), lambda _: told(10.0, 20.0, 30.0), 9)
    seen.forecast(queue(1.0, "abc"), lambda _: told(0.0, 0.0, 0.0), 9)
    seen.looked(queue(50.0, "b", a=25.0, x=1.0))
    assert (seen.starts, seen.held, seen.error) == (1, 1, 5.0)
    seen.looked(queue(60.0, "", a=25.0, b=55.0))
    assert (seen.starts, seen.held, seen.error) == (2, 1, 20.0)
    kept = seen.take_new()
    assert kept is not None
    assert [start.came for start in kept.judged] == [25.0, 55.0]
    assert kept.judged[0].told == Estimate(10.0, 20.0, 30.0)
    early, late = seen.scores["start"]
    assert 0 < early < late
    seen.looked(queue(70.0, "", c=65.0))
    assert seen.starts == 2, "c was gone in between: it is another job now"


def test_partitions_reservations_and_what_has_no_start() -> None:
    seen = StartsSeen()
    waiting = queue(0.0, "ab")
    seen.forecast(waiting, lambda id: NEVER if id == "a" else told(0.0, 1.0, 2.0), 9)
    held = PendingJob("reservation x", 8, 60.0, 30.0)
    seen.forecast(QueueState(now=0.0, processors=8, pending=(held,)), lambda _: told(0.0, 1.0, 2.0), 9)
    seen.looked(together({"one": queue(9.0, "", a=5.0), "two": queue(9.0, "", b=2.0)}))
    assert (seen.starts, seen.held) == (1, 1)


def test_the_newest_jobs_are_followed_as_many_as_may_be_at_once() -> None:
    seen = StartsSeen()
    asked: list[str] = []

    def forecast(id: str) -> StartForecast:
        asked.append(id)
        return NEVER

    for _ in range(3):
        seen.forecast(queue(0.0, "abcde"), forecast, 2)
    assert asked == ["e", "d", "c", "b", "a"], "one without a start is not asked for again"


def test_what_was_judged_is_kept_once_and_counts_again() -> None:
    seen = StartsSeen()
    assert seen.take_new() is None
    seen.forecast(queue(0.0, "ab"), lambda _: told(10.0, 20.0, 30.0), 9)
    seen.looked(queue(50.0, "b", a=25.0))
    kept = seen.take_new()
    assert kept is not None
    assert (len(kept.judged), seen.take_new()) == (1, None)
    again = StartsSeen(kept)
    assert (again.starts, again.held, again.error, again.scores) == (1, 1, 5.0, seen.scores)
    assert again.take_new() is None


def test_it_follows_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts_seen, "MOST_FOLLOWED", 2)
    seen = StartsSeen()
    seen.forecast(queue(0.0, "abc"), lambda _: told(0.0, 1.0, 2.0), 9)
    seen.looked(queue(9.0, "", a=1.0, b=1.0, c=1.0))
    assert seen.starts == 2


def test_waits_are_learned_of_jobs_that_were_not_forecast() -> None:
    """`o` waits at the first look: since when is not known. `z` starts between two looks; `a` and `b` came in
    the middle of two, as far as known."""
    seen = StartsSeen()
    seen.looked(queue(0.0, "o"))
    seen.looked(queue(50.0, "oab"))
    seen.looked(queue(99.0, "b", o=60.0, a=80.0, z=70.0))
    seen.looked(queue(150.0, "", o=60.0, a=80.0, z=70.0, b=140.0))
    kept = seen._waits
    assert sorted(each.wait for each in kept) == [0.0, 55.0, 115.0]
    assert {each.job for each in kept} == {Waiting(1, 100.0)}
    seen.looked(queue(160.0, "c"))
    seen.looked(queue(170.0, ""))
    assert len(seen._waits) == 3, "c was cancelled"


def test_after_a_long_time_without_a_look_waits_of_new_jobs_are_not_known() -> None:
    """`a` was followed before; of `z`, which runs, and of `n`, which waits, nobody saw when they came."""
    seen = StartsSeen()
    seen.looked(queue(0.0))
    seen.looked(queue(100.0, "a"))
    seen.looked(queue(20_000.0, "n", a=10_050.0, z=19_000.0))
    assert [each.wait for each in seen._waits] == [10_000.0]
    seen.looked(queue(20_100.0, "", n=20_050.0))
    assert len(seen._waits) == 1
    seen.looked(queue(20_200.0, "", y=20_150.0))
    assert [each.wait for each in seen._waits] == [10_000.0, 0.0]


def test_a_job_is_noted_again_as_it_waits_and_once_whatever_partitions_it_may_use() -> None:
    seen = StartsSeen()
    seen.looked(queue(0.0))
    for now in range(100, 8100, 100):
        seen.looked(together({"one": queue(now, "a"), "two": queue(now, "a")}))
    seen.looked(together({"one": queue(9000.0, "", a=8900.0), "two": queue(9000.0, "", a=8900.0)}))
    assert [(each.job.waited, each.wait) for each in seen._waits] == [
        (0.0, 8850.0), (950.0, 7900.0), (3650.0, 5200.0)]  # fmt: skip


def test_users_are_known_by_hashes_and_their_jobs_in_front_count() -> None:
    seen = StartsSeen(hashed=lambda user: user.upper())
    owned = msgspec.structs.replace(queue(5.0, "abc"), owners={"a": "ann", "b": "bob", "c": "ann"})
    found = seen.waiting(owned)
    assert {id: (job.owner, job.ahead) for id, job in found.items()} == {
        "a": ("ANN", 0), "b": ("BOB", 0), "c": ("ANN", 1)}  # fmt: skip


def test_reservations_and_jobs_without_a_limit_are_not_compared_and_those_behind_them_are() -> None:
    pending = (
        PendingJob("reservation maint", 8, 600.0),
        PendingJob("endless", 1, math.inf),
        PendingJob("b", 1, 100.0),
    )
    waiting = QueueState(now=0.0, processors=8, pending=pending)
    assert [*StartsSeen().waiting(waiting)] == ["b"]


@pytest.mark.parametrize(
    ("held", "starts", "right"), [(0, 0, True), (45, 50, True), (49, 50, True), (30, 50, False)]
)
def test_intervals_are_right_if_nine_in_ten_starts_may_hold(held: int, starts: int, right: bool) -> None:
    assert is_right(held, starts) is right


def test_waits_are_stored_when_there_are_some() -> None:
    seen = StartsSeen()
    for now in range(60):
        start = float(now)
        seen.looked(msgspec.structs.replace(queue(start + 1, "", **{f"j{now}": start + 0.5}), now=start + 1))
        if now == 30:
            assert seen.take_new() is None, "little is new"
    kept = seen.take_new()
    assert kept is not None
    assert len(kept.waits) == 59
    assert len(StartsSeen(kept).past) == 59
    assert StartsSeen(kept).past_weights == PLAN_ALONE, "no forecast was judged"


def test_the_record_decides_how_much_past_waits_count() -> None:
    seen = StartsSeen()
    forecast = msgspec.structs.replace(told(0.0, 0.0, 0.0), alone=(0.0, 4000.0, 9.0))
    for number in range(40):
        job = f"j{number}"
        waiting = QueueState(now=0.0, processors=8, pending=(PendingJob(job, 1, 100.0),))
        seen.forecast(waiting, lambda _: forecast, 1)
        seen.looked(queue(4100.0, "", **{job: 4000.0}))
    assert seen.past_weights == (0.0, 1.0, 0.0)
    assert not seen.right, "none of 40 held"
    assert StartsSeen().right
