"""Calls go on where the system gives no more threads."""

from __future__ import annotations

import threading

import pytest

from adaptor.daemon.ground.threads import Threads


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)


def test_calls_wait_for_the_threads_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with Threads(4) as pool:
        with monkeypatch.context() as refusing:
            refuse(refusing)
            holding, done = threading.Event(), []
            first = pool.submit(holding.wait)
            others = [pool.submit(done.append, number) for number in range(3)]
            assert not done
            holding.set()
            assert first.result()
            for other in others:
                other.result()
            assert done == [0, 1, 2]
        meeting = threading.Barrier(3)
        for each in [pool.submit(meeting.wait, 30) for _ in range(3)]:
            each.result()  # they meet: there are more threads again


def test_a_pool_without_any_thread_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Threads(4)
