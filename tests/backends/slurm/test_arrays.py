"""Pilot arrays on Slurm: what is asked for, and what is made of elements (as Slurm 22.05 prints them)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from adaptor.config.schema import SiteConfig
from adaptor.model import PilotState
from adaptor.reports import JobReport, JobState
from backends.base import SchedulerError
from backends.observed.site import SiteNodes
from backends.slurm.jobs import OwnSlurmJobs
from backends.slurm.ordering import min_job_age, most_in_array
from backends.slurm.placing.shape import shape_of
from backends.slurm.questions import Questions
from backends.slurm.rows import AccountingRow, QueueRow
from backends.slurm.submitting import arguments_of, together
from tests.backends.orders import order
from tests.backends.slurm.slurm_rows import job

NAME = "adaptor-x.hpc.12-51"
ARRAY = order(tag="adaptor-x.hpc.12", pilots=40)


def test_an_array_is_one_submission_whose_jobs_share_a_log() -> None:
    shape = shape_of(ARRAY, SiteNodes(name="batch", listed={}, members={}, machines=()), per_node=None)
    words = arguments_of(ARRAY, SiteConfig(backend="slurm"), shape.options())
    assert {"--array=0-39", f"--job-name={NAME}", "--open-mode=append"} < set(words)
    assert "--output=/pilots/7/slurm-%A.out" in words


def test_elements_of_an_array_are_cancelled_as_one() -> None:
    assert together(["7", "12_0", "12_2", "13_5", "12_1"]) == ["7", "12_[0-2]", "13_[5]"]


@pytest.mark.parametrize(
    ("told", "most"), [("1001", 1001), ("1", 1), ("0", 1), ("", 1), ("4000001", 4_000_001), ("many", 1)]
)
def test_the_largest_array_is_what_slurm_says(told: str, most: int) -> None:
    assert most_in_array({"MaxArraySize": told}) == most


@pytest.mark.parametrize(("told", "seconds"), [("2 sec", 2.0), ("300 sec", 300.0), ("", 300.0)])
def test_for_how_long_ended_jobs_are_shown_is_what_slurm_says(told: str, seconds: float) -> None:
    assert min_job_age({"MinJobAge": told}) == seconds


class Asked(Questions):
    """Answers with these rows."""

    def __init__(self) -> None:
        self.rows: list[QueueRow] = []
        self.accounted: list[AccountingRow] = []
        self.hidden: set[str] = set()

    def own_jobs(self) -> list[QueueRow]:
        return self.rows

    def known(self, number: str) -> set[str] | None:
        """slurmctld has what squeue shows, and `hidden`."""
        return {row.id for row in self.rows if row.id.partition("_")[0] == number} | self.hidden

    def settings(self) -> dict[str, str]:
        return {}

    def accounting(self, ids: object) -> list[AccountingRow]:
        return self.accounted

    def accounting_since(self, start: str) -> list[AccountingRow]:
        return []

    def knows(self, id: str) -> bool | None:
        return None

    def preempted(self) -> frozenset[str]:
        return frozenset()


@pytest.fixture
def asked() -> Asked:
    return Asked()


def waiting(*indices: int) -> list[QueueRow]:
    return [job(f"1_{index}", 1, name=NAME) for index in indices]


def found(own: OwnSlurmJobs, indices: range) -> dict[str, JobReport]:
    """By tag, without those that are gone."""
    reports = own.reports([f"1_{index}" for index in indices], "adaptor-x.hpc.")
    return {report.tag: report for report in reports if report.state is not JobState.GONE}


def test_each_element_is_reported_with_the_tag_of_its_pilot(asked: Asked) -> None:
    asked.rows = [job("1_0", 1, ("n1",), name=NAME), *waiting(1, 2)]
    reports = OwnSlurmJobs(asked).reports([], "adaptor-x.hpc.")
    assert [(report.id, report.tag, report.state) for report in reports] == [
        ("1_0", "adaptor-x.hpc.12", JobState.RUNNING),
        ("1_1", "adaptor-x.hpc.13", JobState.QUEUED),
        ("1_2", "adaptor-x.hpc.14", JobState.QUEUED),
    ]


def test_an_element_that_slurm_forgets_was_cancelled_in_the_queue(asked: Asked) -> None:
    own = OwnSlurmJobs(asked)
    asked.rows = [job("1_0", 1, ("n1",), name=NAME), *waiting(1, 2)]
    found(own, range(3))
    asked.rows = [job("1_0", 1, ("n1",), name=NAME), *waiting(2)]
    report = found(own, range(3))["adaptor-x.hpc.13"]
    assert (report.id, report.start, report.state.ended) == ("1_1", None, PilotState.CANCELLED)
    assert "adaptor-x.hpc.13" in found(own, range(3)), "and that is said for as long as it is asked for"


def test_an_element_that_an_answer_leaves_out_was_not_cancelled(asked: Asked) -> None:
    own = OwnSlurmJobs(asked)
    asked.rows = waiting(1, 2)
    found(own, range(1, 3))
    asked.rows, asked.hidden = waiting(2), {"1_1"}
    with pytest.raises(SchedulerError, match="squeue left out job 1_1"):
        found(own, range(1, 3))


def test_of_an_element_that_ran_nothing_is_concluded_from_silence(asked: Asked) -> None:
    own = OwnSlurmJobs(asked)
    asked.rows = [job("1_0", 1, ("n1",), name=NAME)]
    found(own, range(1))
    asked.rows = []
    assert not found(own, range(1))


def test_after_a_pause_longer_than_slurm_remembers_nothing_is_concluded(asked: Asked) -> None:
    own = OwnSlurmJobs(asked, remembers=lambda: -1.0)
    asked.rows = waiting(0)
    found(own, range(1))
    asked.rows = []
    assert not found(own, range(1))


def test_what_the_records_say_of_a_missing_element_counts(asked: Asked) -> None:
    own = OwnSlurmJobs(asked)
    asked.rows = waiting(0, 1, 2)
    found(own, range(3))
    asked.rows = []
    ran = AccountingRow(
        id="1_0", name=NAME, state="COMPLETED", start=5.0, end=6.0, nodes=("n1",), processors=1
    )
    cancelled = msgspec.structs.replace(ran, id="1_[1-2]", state="CANCELLED by 7", start=None, processors=0)
    asked.accounted = [ran, cancelled]
    states = {tag: report.state for tag, report in found(own, range(3)).items()}
    assert states == {
        "adaptor-x.hpc.12": JobState.COMPLETED,
        "adaptor-x.hpc.13": JobState.CANCELLED,
        "adaptor-x.hpc.14": JobState.CANCELLED,
    }


def test_the_records_are_asked_for_arrays_as_a_whole(fake: Callable[[str, str], Path]) -> None:
    from backends.commands import Commands

    program = fake("sacct", 'echo "$@" >>"$(dirname "$0")/asked"')
    questions = Questions(Commands(lambda own: own, 20.0))
    questions.accounting([f"1_{index}" for index in range(500)])
    (line,) = (program.parent / "asked").read_text().splitlines()
    assert line.endswith("-j 1")
