"""Which tasks fit on a donated node, all of whose processors, memory and GPUs are ours."""

from __future__ import annotations

import pytest

from adaptor.donation.fitting import slots_on
from adaptor.donation.situation import NodeUse, NodeView
from adaptor.resources import TaskSize

NODE = NodeView(name="n", processors=8, use=NodeUse.IDLE, memory=32, gpus=(("a100", 2), ("k80", 1)))


@pytest.mark.parametrize(
    ("task", "slots"),
    [
        (TaskSize(processors=3), 2),
        (TaskSize(memory=10), 3),
        (TaskSize(gpus=1), 3),
        (TaskSize(gpus=1, gpu_type="a100"), 2),
        (TaskSize(gpus=0.5, gpu_type="k80"), 2),
        (TaskSize(gpus=2), 1),
        (TaskSize(gpus=1, gpu_type="h100"), 0),
        (TaskSize(nodes=2), 0),
    ],
)
def test_what_a_node_holds(task: TaskSize, slots: int) -> None:
    assert slots_on(NODE, NODE.processors, task) == slots
