"""Jobs in JSON look as those of Slurm do, in each release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adaptor.shims.in_json import NEWEST, Release, as_json, meta_of, release_of
from tests.shims.test_formats import a_job

RECORDED = Path(__file__).parents[2] / "fixtures" / "slurm" / "squeue-json.json"
"""The fields of an entry that ours has, of two releases."""
OLD, MIDDLE, NEW = (22, 5), (23, 2), (24, 11)


def told(release: Release, *, accounting: bool = False, **values: Any) -> dict[str, Any]:
    return as_json(
        msgspec.structs.replace(a_job(), **values),
        user="ada",
        uid=1000,
        release=release,
        accounting=accounting,
    )


def number(value: int) -> dict[str, Any]:
    return {"set": True, "infinite": False, "number": value}


@pytest.mark.parametrize(
    ("text", "release"),
    [("slurm-wlm 22.05.8\n", OLD), ("slurm 24.11.5", NEW), ("slurm 26.05.5", (26, 5)), ("", NEWEST)],
)
def test_the_release_is_what_the_command_says(text: str, release: Release) -> None:
    assert release_of(text) == release


def test_numbers_that_may_be_missing_are_objects_since_23_02() -> None:
    old, middle = told(OLD), told(MIDDLE)
    assert (old["cpus"], old["time_limit"], old["array_task_id"]) == (2, 1, None)
    assert (middle["cpus"], middle["time_limit"]) == (number(2), number(1))
    assert middle["array_task_id"] == {"set": False, "infinite": False, "number": 0}
    assert told(NEW, limit=None)["time_limit"] == {"set": False, "infinite": True, "number": 0}
    assert {release["job_id"] for release in (old, middle)} == {469762049}


def test_states_are_lists_and_times_are_objects_since_23_11() -> None:
    middle, new = told(MIDDLE), told(NEW)
    assert (middle["job_state"], new["job_state"]) == ("COMPLETED", ["COMPLETED"])
    assert (middle["start_time"], new["start_time"]) == (20, number(20))
    assert new["exit_code"]["return_code"] == number(0)
    assert (told(OLD)["exit_code"], middle["exit_code"]["return_code"]) == (0, 0)


def test_records_of_ended_jobs() -> None:
    old, new = told(OLD, accounting=True), told(NEW, accounting=True)
    assert old["state"] == {"current": "COMPLETED", "reason": "None"}
    assert new["state"]["current"] == ["COMPLETED"]
    assert (old["time"]["limit"], new["time"]["limit"]) == (1, number(1))
    assert (new["time"]["start"], new["exit_code"]["return_code"]) == (20, number(0))


def test_how_an_answer_begins() -> None:
    assert meta_of(OLD)["Slurm"]["version"] == {"major": 22, "micro": 0, "minor": 5}
    assert meta_of(NEW)["slurm"]["version"]["minor"] == "11"


@pytest.mark.parametrize("release", [OLD, NEW])
def test_an_entry_has_the_shape_of_a_recorded_one(release: Release) -> None:
    """Of an element of an array that runs."""
    recorded = json.loads(RECORDED.read_text())[f"{release[0]}.{release[1]:02}"]
    ours = told(release, array=469762049, index="0")
    assert {name: shape(value) for name, value in ours.items()} == {
        name: shape(recorded.get(name, ours[name])) for name in ours
    }


def shape(value: Any) -> Any:
    """The types of a value and of all in it."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    return [shape(each) for each in value] if isinstance(value, list) else type(value)
