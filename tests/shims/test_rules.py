from __future__ import annotations

import pytest

from adaptor.bagfile.scripts.getopt import GivenOption
from adaptor.bagfile.scripts.sbatch import SBATCH
from adaptor.shims.rules import DependencyError, Rules, TooLarge, check, dependencies, time_limit

OURS = 469762049


def given(*words: str) -> list[GivenOption]:
    return SBATCH.table.leading(words)[0]


@pytest.mark.parametrize(
    ("words", "rules", "seconds"),
    [
        (["-t", "5"], Rules(), 300),
        (["-t", "5:00:00", "--time=1:00:00"], Rules(), 3600),
        ([], Rules(default_time=120), 120),
        (["-t2-0"], Rules(max_time=2 * 86400), 2 * 86400),
    ],
)
def test_a_small_job_has_a_time_limit(words: list[str], rules: Rules, seconds: float) -> None:
    assert time_limit(given(*words), rules) == seconds


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-t", "61"], "--time is 1h 1m, small jobs have up to 1h"),
        ([], "no --time says how small it is"),
        (["-t", "0"], "--time says no limit"),
        (["--time=soon"], "'soon' is no time"),
    ],
)
def test_all_others_are_for_the_scheduler(words: list[str], why: str) -> None:
    with pytest.raises(TooLarge, match=why):
        time_limit(given(*words), Rules())


@pytest.mark.parametrize(
    ("words", "text", "environment", "why"),
    [
        ([], "#!/bin/sh\n#ADAPTOR shim=off\n", {}, "the script says #ADAPTOR shim=off"),
        ([], "#!/bin/sh\n#PBS -l walltime=5\n", {}, "has #PBS lines"),
        (["--test-only"], "#!/bin/sh\n", {}, "--test-only: a bag does not do this"),
        (["-H"], "#!/bin/sh\n", {}, "-H: a bag"),
        ([], "#!/bin/sh\n", {"SBATCH_PARTITION": "fast"}, "SBATCH_PARTITION is set"),
    ],
)
def test_what_a_bag_does_not_do(words: list[str], text: str, environment: dict[str, str], why: str) -> None:
    with pytest.raises(TooLarge, match=why):
        check(given(*words), text, environment)


def test_dependencies_of_ours() -> None:
    found = dependencies(given("-d", f"afterok:{OURS}:{OURS + 1},afterany:{OURS}_3"))
    assert [job.number for job in found.ok] == [OURS, OURS + 1]
    assert [(job.number, job.indices) for job in found.any] == [(OURS, frozenset(["3"]))]
    assert dependencies(given("-d", f"afterok:{OURS}", "-d", "singleton")).singleton, "the last counts"
    assert dependencies([]) == dependencies(given("-d", ""))


def test_jobs_of_the_scheduler_beside_ours() -> None:
    found = dependencies(given("-d", f"afterok:{OURS}:7,afterany:8_1:{OURS}"))
    assert (found.ok_there, found.any_there) == (["7"], ["8_1"])
    assert [job.number for job in [*found.ok, *found.any]] == [OURS, OURS]


@pytest.mark.parametrize(
    "text", ["afterok:7", "afternotok:7,afterok:8", "afterok:7?afterok:8", "expand:7", "x"]
)
def test_jobs_that_wait_for_the_schedulers_go_there(text: str) -> None:
    with pytest.raises(TooLarge, match="waits for jobs of the scheduler"):
        dependencies(given("-d", text))


@pytest.mark.parametrize(
    "text",
    [
        f"afterok:{OURS},afternotok:7",
        f"afternotok:{OURS}",
        f"afterok:{OURS}?afterok:{OURS + 1}",
        f"after:{OURS}+5",
    ],
)
def test_nobody_can_follow_these(text: str) -> None:
    with pytest.raises(DependencyError):
        dependencies(given("-d", text))
