"""What a request takes from a local site."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.model import Request
from backends.base import PilotOrder, SubmitRefused
from backends.local.admission import Machine, admit, this_machine

GIB = 1024**3


def order(
    p: int, tr: int = 60, processors_per_task: int = 1, memory_per_task: int | None = None
) -> PilotOrder:
    return PilotOrder(
        tag="t",
        request=Request(p, tr),
        processors_per_task=processors_per_task,
        memory_per_task=memory_per_task,
        directory=Path("/nowhere"),
        worker=("true",),
        environment={},
    )


@given(st.integers(1, 64), st.data())
def test_a_share_is_enough_and_never_more_than_the_machine(processors: int, data: st.DataObject) -> None:
    machine = Machine(processors, data.draw(st.integers(processors, 64 * GIB)))
    p = data.draw(st.integers(1, processors))
    memory = data.draw(st.none() | st.integers(0, machine.memory // p))
    share = admit(order(p, memory_per_task=memory), machine)
    assert p <= share.held <= processors
    assert (memory or 0) * p <= share.memory <= machine.memory


def test_memory_goes_by_processors() -> None:
    assert admit(order(2), Machine(8, 16 * GIB)).memory == 4 * GIB


def test_who_needs_much_memory_holds_more_processors() -> None:
    share = admit(order(4, processors_per_task=2, memory_per_task=5 * GIB), Machine(8, 16 * GIB))
    assert (share.held, share.memory) == (5, 10 * GIB)


def test_more_memory_than_there_is_is_refused_with_the_numbers() -> None:
    with pytest.raises(SubmitRefused, match=r"20G of memory .* has 16G"):
        admit(order(4, memory_per_task=5 * GIB), Machine(8, 16 * GIB))


@pytest.mark.parametrize(("p", "tr"), [(0, 60), (1, 0), (-1, 60)])
def test_nothing_is_no_request(p: int, tr: int) -> None:
    with pytest.raises(SubmitRefused, match="both must be 1 or more"):
        admit(order(p, tr), Machine(8, GIB))


def test_a_site_may_claim_more_processors_than_the_machine_has() -> None:
    assert this_machine(4096).processors == 4096
    assert this_machine(None).processors >= 1
