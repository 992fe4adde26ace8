"""Pilots as lines: an array is one line that opens, however many pilots it has."""

from __future__ import annotations

from typing import Any

from adaptor import api
from adaptor.cli.bags.pilot_table import ArrayLine, pilot_lines, together
from adaptor.cli.sentences import pilot_notes


def pilot(id: int, array: int | None = None, **fields: Any) -> api.PilotRecord:
    usual: dict[str, Any] = {
        "site": "hpc",
        "job": f"9_{id}",
        "state": "queued",
        "p": 1,
        "tr": 600,
        "node": "",
        "submitted": 0.0,
        "predicted_start": None,
        "started": None,
        "ended": None,
        "reclaim_time": None,
        "reason": "fits the slot",
        "end_reason": "",
        "used": 0.0,
        "wasted": 0.0,
        "workers": 0,
        "note": "",
    }
    return api.PilotRecord(id=id, array=array, **{**usual, **fields})


def test_an_array_is_one_line_with_the_states_of_its_pilots() -> None:
    ended = {"state": "completed", "started": 10.0, "ended": 70.0, "used": 50.0, "wasted": 10.0}
    pilots = [pilot(3), *(pilot(id, 4, **(ended if id < 204 else {})) for id in range(4, 1004)), pilot(1004)]
    single, array, last = together(pilots)
    assert (single, last) == (pilots[0], pilots[-1])
    assert isinstance(array, ArrayLine)
    assert (array.id, array.state, array.p) == ("4-1003", "800 queued, 200 completed", "1000 × 1")
    assert (array.used, array.wasted, array.ended) == (10_000.0, 2_000.0, None)
    assert len(list(pilot_lines(pilots))) == 4
    assert len(list(pilot_lines(pilots, each=True))) == 1 + len(pilots)


def test_pilots_of_an_array_that_ask_for_other_things_by_now_are_lines_of_their_own() -> None:
    pilots = [pilot(1, 1), pilot(2, 1), pilot(3, 1, tr=1200), pilot(4, 1, tr=1200)]
    assert [getattr(row, "id", None) for row in together(pilots)] == ["1-2", "3-4"]


def test_what_is_said_below_an_array_is_said_once() -> None:
    cut = {"state": "cancelled", "end_reason": "cancelled by hand"}
    lines = list(pilot_lines([pilot(1, 1), pilot(2, 1, **cut), pilot(3, 1, **cut)], reasons=True))
    assert [line.strip() for line in lines[2:]] == ["why: fits the slot", "end: 2 pilots: cancelled by hand"]


def test_of_many_different_texts_the_commonest_are_shown() -> None:
    pilots = [pilot(id, 1, end_reason=f"reason {id}") for id in range(1, 10)]
    lines = list(pilot_lines(pilots))
    assert len(lines) == 2 + 3 + 1
    assert lines[-1].strip() == "end: 6 more"


def test_a_note_that_many_pilots_have_is_one_line() -> None:
    pilots = [pilot(id, 1, note="no worker has called") for id in (1, 2, 3, 7)]
    assert pilot_notes([*pilots, pilot(9, note="its node is slow"), pilot(10)]) == [
        "pilots 1-3,7: no worker has called",
        "pilot 9: its node is slow",
    ]
