"""What scontrol says of jobs, and who may be believed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adaptor.resources import Part
from backends.base import SchedulerError
from backends.slurm.placing.job_details import JobDetail, Wish, key_of, parse_job_details

MIB = 2**20
Recorded = Callable[[str], str]


@pytest.fixture
def details(recorded: Recorded) -> dict[str, JobDetail]:
    return parse_job_details(recorded("jobs-mixed.txt"))


def wish(details: dict[str, JobDetail], id: str) -> Wish:
    found = details[id].wish
    assert found is not None
    return found


def test_parts_of_running_and_suspended_jobs(details: dict[str, JobDetail]) -> None:
    assert details["50"].parts == tuple(
        Part(node=node, processors=4, memory=400 * MIB) for node in ("n3", "n4")
    )
    assert details["53"].parts == (Part(node="n3", processors=1, memory=300 * MIB, gpus=(("", 1),)),)


def test_parts_of_several_kinds(recorded: Recorded) -> None:
    line = next(line for line in recorded("jobs-mixed.txt").splitlines() if line.startswith("JobId=50 "))
    uneven = line.replace(
        "Nodes=n[3-4] CPU_IDs=0-3 Mem=400 GRES=",
        "Nodes=n[1-2],x CPU_IDs=0-3,8,10-11 Mem=700 GRES=gpu:a100:2(IDX:0-1),nic:1"
        "   Nodes=n7 CPU_IDs=5 Mem=0 GRES=(null)",
    )
    assert parse_job_details(uneven)["50"].parts == (
        *(Part(node=node, processors=7, memory=700 * MIB, gpus=(("a100", 2),)) for node in ("n1", "n2", "x")),
        Part(node="n7", processors=1),
    )


def test_elements_of_arrays_are_found_as_squeue_names_them(details: dict[str, JobDetail]) -> None:
    assert details[key_of("54_1")].parts == (Part(node="n2", processors=1, memory=200 * MIB),)
    assert wish(details, key_of("54_[2-3%1]")).memory_per_node == 200 * MIB
    assert key_of("46+1") == "46+1"


def test_wishes_of_waiting_jobs(details: dict[str, JobDetail]) -> None:
    assert wish(details, "57") == Wish(
        tasks=3,
        processors_per_task=3,
        nodes=2,
        fixed=False,
        memory_per_processor=200 * MIB,
        features="new|old",
    )
    assert wish(details, "58") == Wish(
        tasks=2, processors_per_task=1, nodes=2, fixed=True, features="[new|old]", excluded="n1"
    )
    assert wish(details, "59") == Wish(
        tasks=4,
        processors_per_task=1,
        nodes=2,
        fixed=False,
        memory_per_gpu=300 * MIB,
        gpus_per_task=(("", 1),),
        required="n3",
    )
    assert wish(details, "60").gpus_per_job == (("a100", 2),)
    assert wish(details, "61").memory_per_node == 3 * 2**30


def test_a_name_may_lie_about_its_own_job_only(recorded: Recorded) -> None:
    text = recorded("jobs-mixed.txt").replace("\nJobId=1 JobName=uneven", "\nJobId=50 JobName=uneven")
    found = parse_job_details(text)
    assert "50" not in found  # two lines: neither is believed
    assert found["53"] == parse_job_details(recorded("jobs-mixed.txt"))["53"]


@pytest.mark.parametrize("text", ["", "\n", "No jobs in the system\n"])
def test_no_jobs(text: str) -> None:
    assert parse_job_details(text) == {}


def test_what_is_no_answer_about_jobs() -> None:
    with pytest.raises(SchedulerError, match="'Segmentation fault'"):
        parse_job_details("Segmentation fault")
