"""Results on their way: none is lost, none is forgotten before it is acknowledged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.protocol.messages import AttemptKey, Ending, Result
from adaptor.worker.tasks import CHUNK, Outbox


def result(task: int) -> Result:
    return Result(AttemptKey(1, task, 1), Ending.EXITED, exit_code=0)


def tasks(results: list[Result]) -> list[int]:
    return [each.key.task for each in results]


def test_a_result_is_sent_once_and_again_when_nobody_answers() -> None:
    outbox = Outbox()
    outbox.add(result(1))
    assert tasks(outbox.batch(0.0, again_after=3.0)) == [1]
    assert not outbox.has_unsent
    assert outbox.batch(2.9, again_after=3.0) == []
    assert tasks(outbox.batch(3.0, again_after=3.0)) == [1]
    assert outbox.batch(4.0, again_after=3.0) == []
    outbox.acknowledge([AttemptKey(1, 1, 1), AttemptKey(9, 9, 9)])
    assert not outbox
    assert outbox.batch(100.0, again_after=3.0) == []


def test_a_backlog_goes_in_chunks() -> None:
    outbox = Outbox()
    for n in range(2 * CHUNK + 1):
        outbox.add(result(n))
    sizes = [len(outbox.batch(0.0, 3.0)) for _ in range(4)]
    assert sizes == [CHUNK, CHUNK, 1, 0]
    assert len(outbox) == 2 * CHUNK + 1


def test_everything_counts_as_sent() -> None:
    outbox = Outbox()
    outbox.add(result(1))
    outbox.batch(0.0, 3.0)
    outbox.add(result(2))
    assert tasks(outbox.everything(2.0)) == [1, 2]
    assert not outbox.has_unsent
    assert outbox.batch(4.0, 3.0) == []
    assert tasks(outbox.batch(5.0, 3.0)) == [1, 2]


@given(st.lists(st.tuples(st.sampled_from(["add", "batch", "all", "ack"]), st.integers(0, 5)), max_size=50))
def test_what_was_added_and_not_acknowledged_is_kept(actions: list[tuple[str, int]]) -> None:
    outbox, kept = Outbox(), set()
    for now, (action, n) in enumerate(actions):
        if action == "add":
            outbox.add(result(n))
            kept.add(n)
        elif action == "batch":
            assert set(tasks(outbox.batch(now, 3.0))) <= kept
        elif action == "all":
            assert set(tasks(outbox.everything(now))) == kept
        else:
            outbox.acknowledge([AttemptKey(1, n, 1)])
            kept.discard(n)
        assert set(tasks(outbox.results())) == kept
        assert {n for n in range(6) if AttemptKey(1, n, 1) in outbox} == kept
        assert len(outbox) == len(outbox.results())
