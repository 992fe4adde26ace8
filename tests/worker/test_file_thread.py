"""Calls in a thread of their own: order, errors, and values that nobody wants any more."""

from __future__ import annotations

import threading

import pytest

from adaptor.worker.file_thread import FileThread


def test_calls_run_in_their_order_and_give_what_they_return_or_raise() -> None:
    thread, order = FileThread(), []
    calls = [thread.call(lambda n=n: order.append(n) or n) for n in range(100)]  # type: ignore[func-returns-value,misc]
    bad = thread.call(lambda: 1 // 0)
    assert bad.wait(20)
    assert order == [call.value() for call in calls] == list(range(100))
    with pytest.raises(ZeroDivisionError):
        bad.value()


@pytest.mark.parametrize("when", ["before", "during", "after"])
def test_a_dropped_value_is_dropped_once_or_never_made(when: str) -> None:
    thread, gate, under_way = FileThread(), threading.Event(), threading.Event()
    dropped: list[int] = []
    first = thread.call(lambda: under_way.set() or gate.wait(20))  # type: ignore[func-returns-value]
    assert under_way.wait(20)

    def slowly() -> int:
        under_way.set()
        again.wait(20)
        return 7

    again = threading.Event()
    under_way.clear()
    call = thread.call(slowly, dropped.append)
    if when == "before":
        call.drop()
    gate.set()
    assert first.wait(20)
    if when == "during":
        assert under_way.wait(20)
        call.drop()
    again.set()
    assert call.wait(20)
    if when == "after":
        call.drop()
    assert dropped == ([] if when == "before" else [7])


def test_the_thread_ends_when_idle_and_the_next_call_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptor.worker.file_thread._IDLE", 0.01)
    thread = FileThread()
    for _ in range(3):
        worker = thread.call(threading.current_thread)
        assert worker.wait(20)
        worker.value().join(20)
        assert not worker.value().is_alive()
    assert thread.call(lambda: 1).wait(20)
