"""The GPUs that requests ask for, for each of their processors."""

from __future__ import annotations

import pytest

from adaptor.crafting.situation import SiteRules
from adaptor.decisions.requests import per_processor
from adaptor.model import Limits, QueueState
from adaptor.resources import Node, PerProcessor, TaskSize

RULES = SiteRules(limits=Limits(max_pending_requests=4, max_proc=256, max_tr=3600))
NODES = tuple(Node(name=f"n{each}", processors=64, gpus=(("a100", 4),)) for each in range(2))
QUEUE = QueueState(now=0.0, processors=128, nodes=NODES)


@pytest.mark.parametrize(
    ("task", "gpus"),
    [
        (TaskSize(processors=4), 0),
        (TaskSize(processors=4, gpus=1), 1 / 4),
        (TaskSize(processors=4, gpus=2), 1 / 2),
        (TaskSize(processors=4, gpus=0.5), 1 / 8),
        (TaskSize(processors=1, gpus=4, nodes=2), 4 / 64),
    ],
)
def test_gpus_of_a_request(task: TaskSize, gpus: float) -> None:
    assert per_processor(RULES, QUEUE, task) == PerProcessor(gpus)
