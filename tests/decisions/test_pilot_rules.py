"""A running pilot that has lost all of its workers is ended, whatever its scheduler believes."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.decisions.actions import End
from adaptor.decisions.pilot_rules import DESERTED, on_pilots
from adaptor.decisions.pilots import Pilot, watch_workers
from adaptor.decisions.snapshot import PilotFacts
from adaptor.model import PilotState, Request
from tests.crafting.planner_views import site, tasks
from tests.decisions.test_decide import snapshot_of

NOW = 1000.0
"""Of the views."""
DESERTED_PILOT = PilotFacts(
    id=7, state=PilotState.RUNNING, request=Request(16, 3600), started=NOW - 900, ends=NOW + 2700,
    processors=None, submitted=NOW - 950, predicted_start=None, bag=None, first_hello=NOW - 890,
    known_since=NOW - 950, without_worker_since=NOW - DESERTED - 1,
)  # fmt: skip


def ended(**changes: object) -> list[int]:
    """The pilots that are ended if the deserted one differs like this."""
    pilot = msgspec.structs.replace(DESERTED_PILOT, **changes)
    snapshot = snapshot_of(site(tasks(8)))
    here = msgspec.structs.replace(snapshot.here, pilots=(pilot,))
    snapshot = msgspec.structs.replace(snapshot, sites={"here": here})
    return [action.pilot for action in on_pilots(snapshot) if isinstance(action, End)]


def test_a_pilot_none_of_whose_workers_answers_is_ended() -> None:
    assert ended() == [7]


@pytest.mark.parametrize(
    "changes",
    [
        {"without_worker_since": None},
        {"without_worker_since": NOW - DESERTED + 1},  # a network may be away for a while
        {"first_hello": None},  # its start-up may take long
        {"leaving": "no task waits"},
        {"state": PilotState.QUEUED},
    ],
)
def test_any_other_pilot_is_left_alone(changes: dict[str, object]) -> None:
    assert ended(**changes) == []


def test_the_time_without_a_worker_begins_with_the_loss_of_the_last_one() -> None:
    pilot = Pilot(7, "tag", Request(4, 600), NOW - 50, None, state=PilotState.RUNNING, started=NOW - 40)
    watch_workers(pilot, NOW, alive=True)
    assert pilot.without_worker_since is None
    for now in (NOW + 5, NOW + 9):
        watch_workers(pilot, now, alive=False)
        assert pilot.without_worker_since == NOW + 5
    watch_workers(pilot, NOW + 12, alive=True)
    assert pilot.without_worker_since is None
