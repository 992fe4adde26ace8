"""After the handshake: what a confused worker or command line says does the daemon no harm."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.daemon.client.commands import ClientEndpoint
from adaptor.model import CraftedRequest, Request
from adaptor.protocol.messages import (
    AttemptKey,
    Ending,
    FromWorker,
    Goodbye,
    Hello,
    Leaving,
    Report,
    Result,
    encode,
)
from tests.daemon.fake_site import FakeSite
from tests.daemon.lived_bags import endpoint_of
from tests.examples import examples
from tests.protocol.test_frames_fuzz import QUESTIONS, damaged

pytestmark = pytest.mark.fuzz

TASKS = 3
_IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A journal for each example, and no disk that is waited for."""
SMALL = st.integers(-2, TASKS + 1)
HUGE = st.sampled_from([-(2**63), 2**31, 2**63 - 1, 2**64 - 1])
NUMBERS = st.one_of(SMALL, SMALL, SMALL, HUGE)
SECONDS = st.one_of(st.floats(0, 100), st.floats())
KEYS = st.builds(AttemptKey, st.sampled_from([1, 1, 1, 2, -1, 2**63]), NUMBERS, NUMBERS)
KEY_LISTS = st.lists(KEYS, max_size=3)
RESULTS = st.lists(
    st.builds(
        Result,
        key=KEYS,
        ending=st.sampled_from(Ending),
        started=SECONDS,
        wall=SECONDS,
        cpu=SECONDS,
        peak_memory=NUMBERS,
        exit_code=st.none() | NUMBERS,
        signal=st.none() | NUMBERS,
        error=st.none() | st.text(max_size=5),
    ),
    max_size=3,
)
HELLOS = st.builds(
    Hello,
    pilot=st.sampled_from([1, 1, 1, 2, -1, 2**63]),
    node=st.text(max_size=5),
    pid=NUMBERS,
    version=st.text(max_size=5),
    processors=NUMBERS,
    memory=NUMBERS,
    deadline=SECONDS | st.just(time.time() + 500),
    holding=KEY_LISTS,
    started=KEY_LISTS,
    unacknowledged=RESULTS,
)
REPORTS = st.builds(
    Report,
    results=RESULTS,
    started=KEY_LISTS,
    free_processors=NUMBERS,
    free_memory=NUMBERS,
    queued=NUMBERS,
    load=st.lists(st.tuples(KEYS, SECONDS), max_size=3),
)
GOODBYES = st.builds(Goodbye, why=st.sampled_from(Leaving), results=RESULTS, took=SECONDS)
SAID = st.lists(
    st.tuples(
        st.sampled_from([b"1-n1-1", b"1-n1-1", b"1-n1-2", b"", b"\xff\xfe"]),
        st.one_of(
            HELLOS.map(encode),
            REPORTS.map(encode),
            GOODBYES.map(encode),
            damaged(REPORTS.map(encode)),
        ),
    ),
    max_size=6,
)


def site_with_a_bag(folder: str) -> FakeSite:
    site = FakeSite(Path(folder) / "state")
    site.submit_bag(TASKS)
    crafted = CraftedRequest(Request(1, 600), None, 1, "because")
    site.journal.add_pilots("here", site.state.tag_prefix, [crafted], time.time())
    site.state.load_pilots()
    return site


@given(SAID)
@examples(100)
def test_what_a_confused_worker_says_breaks_nothing(said: list[tuple[bytes, bytes]]) -> None:
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as folder:
        site = site_with_a_bag(folder)
        endpoint = endpoint_of(site)

        async def hear() -> None:
            site.state.core.deciding = asyncio.Lock()
            for message in said:
                await endpoint.hear([message])

        asyncio.run(hear())
        row = site.journal.connection.execute(
            "SELECT waiting + leased + done + failed + cancelled FROM bag WHERE id = 1"
        ).fetchone()
        assert row == (TASKS,)
        site.restart()
        site.journal.close()


@given(st.lists(damaged(QUESTIONS), max_size=3))
@examples(100)
def test_every_question_has_an_answer(said: list[bytes]) -> None:
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as folder:
        site = site_with_a_bag(folder)
        running = Mock(core=site.state.core, sites={"here": site.state}, stalled="")
        running.retention.forget.return_value = 0
        answers: list[Any] = []

        def send(identity: bytes, data: bytes) -> None:
            answers.append(msgspec.msgpack.decode(data))

        endpoint = ClientEndpoint(running, Mock(), send, Mock(), AsyncMock(return_value=False))

        async def ask() -> None:
            await endpoint.receive([(b"me", data) for data in said])
            await asyncio.gather(*endpoint._background)

        asyncio.run(ask())
        assert len(answers) == len(said)
        site.journal.close()


def test_the_strategies_cover_all_that_a_worker_can_say() -> None:
    assert set(FromWorker.__args__) == {Hello, Report, Goodbye}  # type: ignore[attr-defined]
