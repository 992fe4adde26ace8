from __future__ import annotations

from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.worker.calls.unnamed_outputs import AFTER, UnnamedOutputs
from adaptor.worker.slots import HeldTask

NAMES = ("a", "b")


def held(task: int) -> HeldTask:
    return HeldTask(Lease(AttemptKey(1, task, 1), "a call", 0.0), BagContext(1, "/", "/out", {}))


def test_those_that_run_for_long_get_their_names_once() -> None:
    outputs = UnnamedOutputs()
    for pid in (1, 2, 3):
        outputs.began(pid, held(pid), NAMES, 100.0 + pid)
    assert outputs.due() == 101 + AFTER
    assert outputs.ended(1)
    assert outputs.due() == 102 + AFTER
    assert outputs.take_due(102 + AFTER) == [(held(2), NAMES)]
    assert outputs.take_due(102 + AFTER) == []
    assert not outputs.ended(2)
    assert outputs.ended(3)
    assert outputs.due() == float("inf")
