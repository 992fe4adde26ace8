from __future__ import annotations

import pytest

from adaptor.bagfile.scripts.getopt import OptionError
from adaptor.shims.jobs import job_of
from adaptor.shims.options import read
from tests.shims.test_jobs import view


def test_each_side_gets_its_own_jobs() -> None:
    asked = read("squeue", ["-h", "-j", "7,469762049", "-o%i", "--states=all"])
    assert [job.number for job in asked.ids] == [469762049]
    assert asked.for_ours
    assert asked.for_scheduler
    assert asked.words() == ["--noheader", "--format=%i", "--states=all", "--jobs=7"]


def test_ids_of_scancel_stand_between_its_options() -> None:
    asked = read("scancel", ["-Q", "469762049_[1,2]", "7", "-s", "TERM", "8"])
    assert asked.other_ids == ["7", "8"]
    assert [job.indices for job in asked.ids] == [frozenset("12")]
    assert asked.value("signal") == "TERM"


@pytest.mark.parametrize(
    ("words", "ours", "schedulers"),
    [
        ([], True, True),
        (["-j", "7"], False, True),
        (["-j", "469762049"], True, False),
        (["-p", "batch"], False, True),
        (["-p", "batch", "-u", "me"], True, True),
        (["-M", "all", "--name=x"], True, True),
        (["-M", "other"], False, True),
    ],
)
def test_whose_jobs_are_meant(words: list[str], ours: bool, schedulers: bool) -> None:
    asked = read("squeue", words)
    assert (asked.for_ours, asked.for_scheduler) == (ours, schedulers)


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (["-u", "ada"], True),
        (["-u", "bob,1000"], True),
        (["-u", "bob"], False),
        (["-n", "sim,x"], True),
        (["-n", "x"], False),
        (["-t", "cd"], True),
        (["-t", "R,PENDING"], False),
        (["--states=all"], True),
    ],
)
def test_which_jobs_are_chosen(words: list[str], chosen: bool) -> None:
    job = job_of(view(), 30.0)
    assert job is not None
    assert read("squeue", words).chooses(job, "ada", 1000) is chosen


def test_unknown_options_are_for_the_real_command() -> None:
    with pytest.raises(OptionError):
        read("sacct", ["--no-such-option"])
