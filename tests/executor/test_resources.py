"""What single calls need: the keys and values, and views of an executor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adaptor
from adaptor.client.bags import Client
from adaptor.executor.executor import Executor
from adaptor.executor.resources import CallTerms
from adaptor.executor.session import Session
from adaptor.resources import OwnNeeds, TaskSize
from tests.executor.test_session import SOON, FakeBag
from tests.living import until


@pytest.fixture
def bag(tmp_path: Path) -> FakeBag:
    made = FakeBag(tmp_path / "out")
    made.may_append.set()
    return made


@pytest.fixture
def executor(bag: FakeBag) -> Iterator[Executor]:
    """At a bag in memory, on sites of 8 processors."""

    class Here(Executor):
        def __init__(self) -> None:
            self._session = Session(lambda: cast(Client, bag), 1, "key", bag.folder)
            self._most, self._size, self._processors = None, TaskSize(), 8
            self._terms = CallTerms()
            self._max_workers = self._most_at_once()

    made = Here()
    yield made
    bag.may_end.set()
    made._session.close()
    made._session.wait()


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"cpus": 0}, "cpus: '0' is not an integer of 1 or more"),
        ({"cpus": "two"}, "cpus: 'two' is not an integer"),
        ({"mem": "x"}, "mem: 'x' is not a size"),
        ({"name": "all"}, "name: 'all' selects other bags"),
    ],
)
def test_an_executor_refuses_what_cannot_be(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}"):
        Executor(**wrong)


def test_a_call_says_what_it_needs_and_what_its_environment_has(bag: FakeBag, executor: Executor) -> None:
    bag.may_end.set()
    needs: adaptor.Resources = {"cpus": 2, "mem": "4G", "gpus": "a100:1", "time": "10m", "env": {"A": "b"}}
    assert executor.submit(divmod, 7, 2, adaptor_resources=needs).result(SOON) == (3, 1)
    assert executor.submit(abs, -1).result(SOON) == 1
    first, second = bag.appended
    assert first.needs == OwnNeeds(cpus=2, memory=4 * 2**30, gpus=1.0, gpu_type="a100", time=600.0)
    assert (first.environment, second.environment, second.needs) == ({"A": "b"}, None, None)


def test_a_view_adds_to_what_it_was_made_of(bag: FakeBag, executor: Executor) -> None:
    bag.may_end.set()
    wide = executor.with_resources(cpus=2, env={"A": "1", "B": "1"})
    large = wide.with_resources(mem="1G", env={"B": "2"})
    assert list(large.map(abs, [-1])) == [1]
    assert wide.submit(abs, -2, adaptor_resources={"cpus": 3}).result(SOON) == 2
    first, second = bag.appended
    assert (first.needs, first.environment) == (OwnNeeds(cpus=2, memory=2**30), {"A": "1", "B": "2"})
    assert (second.needs, second.environment) == (OwnNeeds(cpus=3), {"A": "1", "B": "1"})
    assert large.bag == executor.bag
    assert [each._max_workers for each in (executor, wide, executor.with_resources(cpus=9))] == [8, 4, 1]


def test_the_end_of_a_view_is_not_that_of_its_executor(bag: FakeBag, executor: Executor) -> None:
    with executor.with_resources(cpus=2) as view:
        waiting = view.submit(abs, -1)
        bag.may_end.set()
    assert waiting.done()
    with pytest.raises(RuntimeError, match="after shutdown"):
        view.submit(abs, -1)
    assert executor.submit(abs, -3).result(SOON) == 3


def test_a_view_cancels_its_own_calls_alone(bag: FakeBag, executor: Executor) -> None:
    bag.may_append.clear()
    view = executor.with_resources(cpus=2)
    other, mine = executor.submit(abs, -2), view.submit(abs, -1)
    until(lambda: bag.appended, "the first is on its way, and keeps the other back", pause=0.01)
    view.shutdown(cancel_futures=True)
    assert mine.cancelled()
    bag.may_append.set()
    bag.may_end.set()
    assert other.result(SOON) == 2


def test_a_view_ends_with_its_executor(executor: Executor, bag: FakeBag) -> None:
    view = executor.with_resources(cpus=2)
    bag.may_end.set()
    executor._session.close()
    with pytest.raises(RuntimeError, match="after shutdown"):
        view.submit(abs, -1)


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        ({"cpu": 2}, "unknown key 'cpu' (did you mean 'cpus'?)"),
        ({"nodes": 2}, "unknown key 'nodes' (known are cpus, mem, gpus, time, env)"),
        ({"cpus": 0}, "cpus: needs a whole number of 1 or more"),
        ({"cpus": "2"}, "cpus: needs a whole number"),
        ({"cpus": 10**10}, "cpus: needs a whole number of at most 1000000000"),
        ({"mem": "4 apples"}, "mem: '4 apples' is not a size"),
        ({"mem": 0}, "mem: '0' is not a size above 0"),
        ({"gpus": 0.7}, "gpus: 0.7 of a GPU is no share"),
        ({"time": "soon"}, "time: 'soon' is not a duration"),
        ({"time": 0.0001}, "time: must be above 0"),
        ({"env": {"A=B": "c"}}, "env: 'A=B' is not a name of a variable"),
        ({"env": {"A": 1}}, "env[...]: needs text, not a whole number"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(
    executor: Executor, bag: FakeBag, resources: Mapping[str, Any], problem: str
) -> None:
    for refused in (
        lambda: executor.submit(abs, -1, adaptor_resources=cast(adaptor.Resources, resources)),
        lambda: executor.with_resources(**cast(adaptor.Resources, resources)),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(problem)}"):
            refused()
    assert not bag.appended


_TERMS = st.fixed_dictionaries(
    {},
    optional={
        "cpus": st.integers(1, 9),
        "mem": st.integers(1, 2**40).map("{}B".format),
        "gpus": st.sampled_from([0, 0.5, 1, 2, "a100:1"]),
        "time": st.floats(0.001, 1e6),
        "env": st.dictionaries(st.sampled_from("ABC"), st.text("xyz", max_size=2)),
    },
)


@given(_TERMS, _TERMS)
def test_what_is_named_last_counts(first: dict[str, Any], second: dict[str, Any]) -> None:
    env = {**first.get("env", {}), **second.get("env", {})}
    merged = {**first, **second, "env": env}
    assert CallTerms().but(first).but(second) == CallTerms().but(merged)
