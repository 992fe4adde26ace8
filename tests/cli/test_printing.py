"""`--json`: times are ISO 8601 and durations are floats, by the types of the fields."""

from __future__ import annotations

from adaptor import api
from adaptor.cli.printing import readable
from adaptor.resources import OwnNeeds

AT = 1_700_000_000.5
ISO = "2023-11-14T22:13:20.500Z"


def test_times_of_every_view_are_iso_8601() -> None:
    removed = api.RemovedPilotView(pilot=1, site="a", reserved=0.0, submitted=AT, started=None, due=AT)
    journal = api.JournalView(size=0, bags=0, oldest=AT, keep=60.0, compacting=False)
    told = readable({"removed": [removed], "journal": journal})
    assert told["removed"][0]["due"] == told["removed"][0]["submitted"] == ISO
    assert told["removed"][0]["started"] is None
    assert (told["journal"]["oldest"], told["journal"]["keep"]) == (ISO, 60.0)


def test_a_duration_is_a_float_and_no_time_of_the_calendar() -> None:
    slot = api.SlotView(start=AT, end=None, processors=4, p=4, tr=3600)
    told = readable(slot)
    assert told["start"] == ISO
    assert isinstance(told["tr"], float)
    assert readable(OwnNeeds(time=600.0))["time"] == 600.0, "what a task takes"
