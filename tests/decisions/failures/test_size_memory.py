"""What is remembered of sizes outlives a daemon."""

from __future__ import annotations

import msgspec

from adaptor.decisions.failures.size_memory import KeptSizes, SizeMemory
from adaptor.decisions.failures.tried_sizes import KEPT
from adaptor.model import PilotState, Request
from adaptor.reports import Remedy
from adaptor.resources import TaskSize
from tests.decisions.test_pilot_rules import NOW, QUEUED, pilot

WIDE = Request(8, 3600)


def test_what_has_failed_is_kept_once_and_known_to_the_next_daemon() -> None:
    asked = pilot(QUEUED, shape=(TaskSize(), None), state=PilotState.QUEUED)
    memory = SizeMemory()
    assert memory.take_new() is None
    memory.failed(asked, WIDE, Remedy.SMALLER, "too much", NOW + KEPT)
    kept = memory.take_new()
    assert kept is not None
    assert memory.take_new() is None, "it is kept"
    written = msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=tuple[KeptSizes, ...])
    after = SizeMemory(written)
    assert after.at(NOW) == memory.at(NOW)
    assert after.take_new() is None
    assert after.at(NOW + KEPT + 1) == {}
    assert after.take_new() == (), "what counts no longer is removed"
