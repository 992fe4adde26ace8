"""Pilot arrays on OpenPBS, by answers as `fixtures/openpbs` and recordings of arrays have them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adaptor.config.schema import SiteConfig
from adaptor.reports import JobState
from backends.base import ChangeRefused
from backends.commands import Commands
from backends.machines.here import HERE
from backends.pbs.backend import PbsBackend
from backends.pbs.constraints import shape_of
from backends.pbs.fields import array_id, element_id, element_index, is_array, is_element
from backends.pbs.openpbs.server import OpenPbs, job_state
from backends.pbs.openpbs.submitting import arguments_of
from backends.pbs.reading import SharedServer
from tests.backends.orders import order

Fake = Callable[[str, str], Path]
ARRAY = order(tag="adaptor-x.hpc.12", pilots=40)
COMMON = "Resource_List.ncpus=1|Resource_List.walltime=00:10:00|Rerunable=True|queue=workq|Job_Owner=u@h"
TAG = "Variable_List=PBS_O_HOME=/h,ADAPTOR_TAG=adaptor-x.hpc.12-51"
BEGAN = "stime=Sat Nov 21 06:07:46 2026"


def line(id: str, state: str, *more: str) -> str:
    return "|".join(
        [f"Job Id: {id}", "Job_Name=adaptor-x.hpc.12-51", f"job_state={state}", COMMON, TAG, *more]
    )


PARENT = line(
    "3[].srv", "B", "substate=70", BEGAN, "array_state_count=Queued:2 Running:1 Exiting:0 Expired:1"
)
RUNS = line("3[0].srv", "R", "substate=42", BEGAN, "exec_host=n1/1", "exec_vnode=(n1:ncpus=1)", "run_count=1")
ENDED = line("3[1].srv", "X", "substate=92", BEGAN, "exec_host=n1/2", "Exit_status=0", "run_count=1")
WAITS = [line(f"3[{index}].srv", "Q", "substate=10", BEGAN) for index in (2, 3)]
DELETED = line("3[3].srv", "X", "substate=92", BEGAN, "Exit_status=1", "comment=Subjob finished")


def test_an_array_is_one_submission_that_pbs_takes() -> None:
    words = arguments_of(ARRAY, SiteConfig(backend="pbs"), shape_of(ARRAY, None, ()), Path("/s.sh"))
    assert words[words.index("-J") + 1] == "0-39"
    assert words[words.index("-r") + 1] == "y", "PBS takes no array that is not rerunnable"
    assert words[words.index("-N") + 1] == "adaptor-x.hpc.12-51"
    assert words[words.index("-v") + 1] == "ADAPTOR_TAG=adaptor-x.hpc.12-51"


def test_ids_of_arrays_and_of_their_jobs() -> None:
    assert element_id("3[].srv", 7) == "3[7].srv"
    assert array_id("3[7].srv") == "3[].srv"
    assert element_index("3[7].srv") == 7
    assert [is_element(id) for id in ("3[7].srv", "3[].srv", "3.srv", "3[x].srv")] == [
        True,
        False,
        False,
        False,
    ]
    assert [is_array(id) for id in ("3[7].srv", "3[].srv", "3.srv")] == [False, True, False]


VERSION = "[[ $1 != --version ]] || exec echo 'pbs_version = 23.06.06'\n"


@pytest.fixture
def answers(fake: Fake, tmp_path: Path) -> Callable[..., None]:
    """What qstat prints of the array, and with `-t` of its jobs."""
    fake("qselect", "[[ $1 == -x ]] || echo '3[].srv'")
    folder = tmp_path / "printed"
    folder.mkdir()
    fake("qstat", VERSION + f'cat {folder}/array; [[ " $* " == *" -t "* ]] && cat {folder}/elements; exit 0')

    def write(*elements: str) -> None:
        (folder / "array").write_text(f"{PARENT}\n")
        (folder / "elements").write_text("".join(f"{each}\n" for each in elements))

    return write


def states(pbs: OpenPbs, *ids: str) -> dict[str, JobState]:
    return {job.tag: job_state(job) for job in pbs.own_jobs(ids)}


def test_each_job_of_an_array_is_told_with_the_tag_of_its_pilot(answers: Callable[..., None]) -> None:
    answers(RUNS, ENDED, *WAITS)
    pbs = OpenPbs(Commands(lambda own: own, 20.0))
    assert states(pbs) == {
        "adaptor-x.hpc.12": JobState.RUNNING,
        "adaptor-x.hpc.13": JobState.COMPLETED,
        "adaptor-x.hpc.14": JobState.QUEUED,
        "adaptor-x.hpc.15": JobState.QUEUED,
    }


def test_a_job_that_was_deleted_in_the_queue_is_told_from_one_whose_record_is_gone(
    answers: Callable[..., None],
) -> None:
    pbs = OpenPbs(Commands(lambda own: own, 20.0))
    answers(RUNS, DELETED)
    assert states(pbs, "3[3].srv") == {"adaptor-x.hpc.12": JobState.RUNNING}, "it may have run"
    answers(RUNS, *WAITS)
    states(pbs)
    answers(RUNS, WAITS[0], DELETED)
    for question in ("before a cancel", "at the next look"):
        (job,) = (job for job in pbs.own_jobs(["3[3].srv"]) if job.id == "3[3].srv")
        assert (job_state(job), job.start) == (JobState.CANCELLED, None), question


def test_a_job_that_was_deleted_in_the_queue_while_no_daemon_ran_is_gone(
    answers: Callable[..., None],
) -> None:
    answers(RUNS, DELETED)
    reports = PbsBackend(SiteConfig(backend="pbs")).jobs(["3[0].srv", "3[3].srv"], "adaptor-x.hpc.")
    assert {(report.id, report.state) for report in reports} == {
        ("3[0].srv", JobState.RUNNING),
        ("3[3].srv", JobState.GONE),
    }


def test_a_job_of_an_array_is_not_changed() -> None:
    backend = PbsBackend(SiteConfig(backend="pbs"))
    with pytest.raises(ChangeRefused, match="no single job of an array"):
        backend.reshape("3[7].srv", ARRAY)


def test_a_job_of_another_array_with_the_number_of_a_pilot_is_told_with_its_name(
    answers: Callable[..., None], tmp_path: Path
) -> None:
    answers()
    other = "Job_Name=mine|job_state=Q|queue=workq|Job_Owner=u@h"
    (tmp_path / "printed" / "array").write_text(f"Job Id: 3[].srv|{other}\n")
    (tmp_path / "printed" / "elements").write_text(f"Job Id: 3[1].srv|{other}\n")
    reports = PbsBackend(SiteConfig(backend="pbs")).jobs(["3[1].srv"], "adaptor-x.hpc.")
    assert [(report.id, report.tag) for report in reports] == [("3[1].srv", "mine")]


def test_a_job_of_an_array_that_pbs_does_not_know_is_gone(fake: Fake) -> None:
    fake("qselect", "exit 0")
    fake("qstat", VERSION + "echo 'qstat: Unknown Job Id 3[].srv' >&2; exit 153")
    reports = PbsBackend(SiteConfig(backend="pbs")).jobs(["3[1].srv"], "adaptor-x.hpc.")
    assert [(report.id, report.state) for report in reports] == [("3[1].srv", JobState.GONE)]


def test_threads_that_ask_first_at_the_same_time_share_what_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = threading.Barrier(2)

    def choosing(*_: object) -> OpenPbs:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        return OpenPbs(Commands(lambda own: own, 20.0))

    monkeypatch.setattr("backends.pbs.reading.choose", choosing)
    server = SharedServer(SiteConfig(backend="pbs"), HERE)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: server.pbs(), range(2))
    assert first is second
