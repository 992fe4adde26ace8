"""Why something starts when it does, and what its forecast leaves out, in sentences."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.forecast.start import Before, KnownQueue, QueueFutures, StartForecast, StartRequest
from adaptor.forecast.start_reasons import reason, remarks
from adaptor.model import QueueState
from adaptor.resources import Need, Node
from tests.examples import examples
from tests.forecast.test_start import queues

NOW = 1_700_000_000.0
QUEUE = QueueState(
    now=NOW,
    processors=8,
    nodes=(Node(name="a", processors=8), Node(name="b", processors=8, in_service=False)),
)
ASKED = StartRequest(processors=4, tr=3600.0, unit=Need(chunks=1, processors=1))


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


@examples(60)
@given(queue=queues(), p=st.integers(1, 8), tr=st.integers(1, 500))
def test_every_request_on_nodes_gets_its_sentence(queue: QueueState, p: int, tr: int) -> None:
    """Also where the processors that are free all the time lie on nodes that change."""
    asked = StartRequest(processors=p, tr=tr, unit=Need(chunks=1, processors=1) if queue.nodes else None)
    forecast = QueueFutures(KnownQueue(queue=queue)).request(asked)
    assert reason(forecast, asked, queue)
    if forecast.before is not None and forecast.before.hole is not None:
        assert queue.now < forecast.before.hole < math.inf


def found(before: Before | None, planned: float = NOW + 600) -> StartForecast:
    return StartForecast(planned=planned, start=None, before=before)


def test_what_starts_at_once() -> None:
    assert reason(found(None, NOW), ASKED, QUEUE) == "4 processors are free for 1h"
    assert reason(found(None, NOW), msgspec.structs.replace(ASKED, processors=1), QUEUE).startswith(
        "1 processor is"
    )
    assert reason(found(None), ASKED, QUEUE, NOW + 600) == "4 processors are free for 1h then"
    assert reason(found(None, NOW), None, QUEUE) == "the processors that it asks for are free now"


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (Before(waiting=0, job="7", processors=4, runs=True),
         "it needs what job 7 (4 processors) has until 22:23:20 at the latest"),
        (Before(waiting=1, job="8", processors=1),
         "1 job that waits comes first; it follows job 8 (1 processor), which is planned to end by 22:23:20"),
        (Before(waiting=12, job="reservation maint", processors=8, runs=True),
         "12 jobs that wait come first; it needs what the reservation maint (8 processors) has until 22:23:20"
         " at the latest"),
        (Before(waiting=0, hole=NOW + 300, then="9"),
         "4 processors are free until 22:18:20, when job 9 is to start, and that is too short"),
        (Before(waiting=0, hole=NOW + 300), "4 processors are free until 22:18:20, and that is too short"),
        (Before(waiting=0), "it starts when the plan of the queue has room for it"),
    ],
)  # fmt: skip
def test_what_comes_first(before: Before, words: str) -> None:
    assert reason(found(before), ASKED, QUEUE) == words


def test_a_start_on_another_day_has_its_date() -> None:
    days = found(Before(waiting=0, job="7", processors=4, runs=True), NOW + 90_000)
    assert "2023-11-15 23:13:20" in reason(days, ASKED, QUEUE)


def test_what_never_starts() -> None:
    never = found(None, math.inf)
    wide = msgspec.structs.replace(ASKED, processors=12)
    assert reason(never, wide, QUEUE) == (
        "it needs 12 processors, and 8 that it can use are in service now (1 of 2 nodes are out of service)"
    )
    assert reason(never, ASKED, QUEUE).startswith("jobs without a known end hold what it needs")
    assert reason(never, None, msgspec.structs.replace(QUEUE, nodes=())).endswith("what it needs")


def test_what_is_not_known() -> None:
    some = remarks(QUEUE, hidden=3, learned=2, at=NOW + 60)
    assert [words.split(",")[0] for words in some] == [
        "the scheduler hides the jobs on 3 processors",
        "1 node out of service that may come back",
        "little is known of how long jobs run here (2 jobs seen to end)",
        "jobs that come until then",
        "jobs that come later with a higher priority",
    ]
    whole = msgspec.structs.replace(QUEUE, nodes=QUEUE.nodes[:1])
    assert remarks(whole, hidden=0, learned=99, at=None) == ["jobs that come later with a higher priority"]
