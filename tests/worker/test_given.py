"""What a worker has of its node, beside what was asked for."""

from __future__ import annotations

import os

import pytest

from adaptor.shortfalls import Shortfall
from adaptor.worker.given import AskedOfNode, NodeBounds, asked_of, bounds_of, given

GIB = 1 << 30
FREE = NodeBounds(affinity=None, step=None, memory=None, gpus=0)


@pytest.mark.parametrize(
    ("asked", "bounds", "offered", "shortfalls"),
    [
        (AskedOfNode(6, None, 0), {}, (6, 64 * GIB), []),
        (AskedOfNode(6, GIB, 0), {"affinity": 6, "step": 6, "memory": GIB}, (6, GIB), []),
        (AskedOfNode(6, GIB, 2), {"affinity": 8, "step": 8, "memory": 2 * GIB, "gpus": 4}, (6, GIB), []),
        (
            AskedOfNode(6, None, 0),
            {"affinity": 2},
            (2, 64 * GIB),
            [Shortfall("processors", 6, 2, "affinity")],
        ),
        (AskedOfNode(6, None, 0), {"step": 2}, (2, 64 * GIB), [Shortfall("processors", 6, 2, "job step")]),
        (
            AskedOfNode(6, None, 0),
            {"affinity": 4, "step": 2},
            (2, 64 * GIB),
            [Shortfall("processors", 6, 2, "job step")],
        ),
        (
            AskedOfNode(6, None, 0),
            {"affinity": 2, "step": 4},
            (2, 64 * GIB),
            [Shortfall("processors", 6, 2, "affinity")],
        ),
        (
            AskedOfNode(6, 3 * GIB, 0),
            {"memory": GIB},
            (6, GIB),
            [Shortfall("memory", 3 * GIB, GIB, "cgroup")],
        ),
        (AskedOfNode(6, None, 0), {"memory": GIB}, (6, GIB), []),
        (AskedOfNode(6, GIB + 1000, 0), {"memory": GIB}, (6, GIB), []),
        (AskedOfNode(6, None, 2), {"gpus": 1}, (6, 64 * GIB), [Shortfall("gpus", 2, 1, "devices")]),
    ],
)
def test_no_more_is_offered_than_there_is(
    asked: AskedOfNode, bounds: dict[str, int], offered: tuple[int, int], shortfalls: list[Shortfall]
) -> None:
    found = given(asked, FREE._replace(**bounds), 64 * GIB)
    assert (found.processors, found.memory) == offered
    assert list(found.shortfalls) == shortfalls


def test_what_a_script_says() -> None:
    said = {"ADAPTOR_PROCESSORS": "4", "ADAPTOR_MEMORY": "100", "ADAPTOR_GPUS": "2"}
    assert asked_of(said) == AskedOfNode(4, 100, 2)
    assert asked_of({"ADAPTOR_PROCESSORS": "x", "ADAPTOR_GPUS": "9" * 30}) == AskedOfNode(1, None, 0)


def test_an_affinity_counts_only_where_it_leaves_processors_out(monkeypatch: pytest.MonkeyPatch) -> None:
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(online)))
    assert bounds_of({}).affinity is None
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_NPROCESSORS_ONLN": online + 2}[name])
    assert bounds_of({}).affinity == online
    assert bounds_of({"ADAPTOR_AFFINITY": "ignored"}).affinity is None


def test_gpus_are_those_that_slurm_names() -> None:
    step = {"ADAPTOR_GPUS": "2", "SLURM_STEP_ID": "0"}
    assert bounds_of({**step, "CUDA_VISIBLE_DEVICES": "0"}).gpus == 1
    assert bounds_of(step).gpus == 0
    assert bounds_of({"ADAPTOR_GPUS": "2"}).gpus == 2, "PBS may only count them"
