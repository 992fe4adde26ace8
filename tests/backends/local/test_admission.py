"""What a request takes from a local site."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.model import Request
from adaptor.resources import Part, TaskSize
from backends.base import PilotOrder, SubmitRefused
from backends.local.admission import LocalMachine, admit, this_machine

GIB = 1024**3


def order(
    p: int,
    tr: int = 60,
    task: TaskSize = TaskSize(),  # noqa: B008 (it is frozen)
) -> PilotOrder:
    return PilotOrder(
        tag="t",
        request=Request(p, tr),
        task=task,
        directory=Path("/nowhere"),
        worker=("true",),
        environment={},
    )


@given(st.integers(1, 64), st.data())
def test_a_job_holds_what_its_tasks_need_and_its_worker_may_use_no_more(
    processors: int, data: st.DataObject
) -> None:
    machine = LocalMachine(processors, data.draw(st.integers(processors, 64 * GIB)), ("0", "1", "2"))
    p = data.draw(st.integers(1, processors))
    memory = data.draw(st.none() | st.integers(0, machine.memory // p))
    gpus = data.draw(st.sampled_from([0, 1 / 8, 1]))
    assume(p * gpus <= 3)
    admission = admit(order(p, task=TaskSize(memory=memory, gpus=gpus)), machine)
    held = (("", math.ceil(p * gpus)),) if gpus else ()
    assert admission.holds == Part(node="local", processors=p, memory=p * (memory or 0), gpus=held)
    assert admission.holds.memory <= admission.memory <= machine.memory


def test_a_job_that_does_not_say_what_memory_it_needs_may_use_what_goes_with_its_processors() -> None:
    found = admit(order(2), LocalMachine(8, 16 * GIB))
    assert (found.holds.memory, found.memory) == (0, 4 * GIB)


def test_memory_does_not_take_processors() -> None:
    found = admit(order(4, task=TaskSize(processors=2, memory=5 * GIB)), LocalMachine(8, 16 * GIB))
    assert (found.holds, found.memory) == (Part(node="local", processors=4, memory=10 * GIB), 10 * GIB)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (TaskSize(gpus=1), r"3 GPUs were asked for, but the local site has 2; .* set `gpus` of the site"),
        (
            TaskSize(gpus=0.5, gpu_type="a100"),
            "a100 GPUs were asked for, but the local site does not know types",
        ),
        (TaskSize(nodes=2), "each task needs 2 nodes, and the local site is one machine"),
    ],
)
def test_what_the_machine_never_has_is_refused(task: TaskSize, words: str) -> None:
    with pytest.raises(SubmitRefused, match=words):
        admit(order(3, task=task), LocalMachine(4, GIB, ("0", "1")))


def test_more_memory_than_there_is_is_refused_with_the_numbers() -> None:
    with pytest.raises(SubmitRefused, match=r"20G of memory .* has 16G"):
        admit(order(4, task=TaskSize(memory=5 * GIB)), LocalMachine(8, 16 * GIB))


@pytest.mark.parametrize(("p", "tr"), [(0, 60), (1, 0), (-1, 60)])
def test_nothing_is_no_request(p: int, tr: int) -> None:
    with pytest.raises(SubmitRefused, match="both must be 1 or more"):
        admit(order(p, tr), LocalMachine(8, GIB))


def test_a_site_may_claim_more_processors_than_the_machine_has() -> None:
    assert this_machine(4096).processors == 4096
    assert this_machine(None).processors >= 1
