"""What waiting jobs need, of the recorded scene."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from adaptor.resources import Need
from backends.slurm.nodes import PartitionNodes
from backends.slurm.placing.job_details import JobDetail, JobWish
from backends.slurm.placing.needs import NOWHERE, SlurmNeeds
from backends.slurm.questions import SlurmReading
from backends.slurm.rows import QueueRow
from tests.backends.slurm.slurm_rows import job

MIB = 2**20


@pytest.fixture
def need_of(
    reading: SlurmReading, rows: dict[str, QueueRow], mixed: PartitionNodes
) -> Callable[[str], Need | None]:
    """By the name of a job."""
    needs = SlurmNeeds(mixed, whole_nodes=False)
    return lambda name: needs.of(rows[name], reading.job_details.found[rows[name].id])


def test_recorded_needs(need_of: Callable[[str], Need | None]) -> None:
    assert need_of("typed") == Need(
        chunks=1,
        processors=1,
        memory=500 * MIB,
        gpus=1,
        gpu_type="a100",
        scatter=True,
    )
    assert need_of("tasks") == Need(chunks=3, processors=3, memory=600 * MIB)
    assert need_of("pair") == Need(
        chunks=2, processors=1, scatter=True, whole_nodes=True, nodes=frozenset({"n2", "n3", "n4"})
    )
    assert need_of("gpus") == Need(chunks=4, processors=1, memory=300 * MIB, gpus=1)
    assert need_of("all") == Need(
        chunks=1, processors=4, gpus=2, gpu_type="a100", scatter=True, whole_nodes=True
    )
    assert need_of("fast") == Need(
        chunks=1, processors=2, memory=3 * 2**30, scatter=True, nodes=frozenset({"n4"})
    )


WISH = JobWish(tasks=2, processors_per_task=2, nodes=1, fixed=False, memory_per_processor=100 * MIB)


def wanting(**changes: object) -> JobDetail:
    return JobDetail(wish=msgspec.structs.replace(WISH, **changes))


def test_jobs_with_the_same_answer_share_one_set(mixed: PartitionNodes) -> None:
    needs = SlurmNeeds(mixed, whole_nodes=False)
    old = [
        needs.of(job(id, 4), wanting(features=features))
        for id, features in (("1", "old"), ("2", "old"), ("3", "old|old"))
    ]
    assert all(each is not None and each.nodes == {"n1", "n2"} for each in old)
    assert len({id(each.nodes) for each in old if each}) == 1


def test_memory_that_nobody_counts_keeps_nobody_away(mixed: PartitionNodes) -> None:
    site = msgspec.structs.replace(mixed, memory_counted=False)
    silent = wanting(memory_per_processor=0)
    needs = SlurmNeeds(site, whole_nodes=False)
    assert needs.of(job("1", 4), silent) == needs.of(job("2", 4), wanting()) == Need(chunks=2, processors=2)


def test_who_names_no_memory_gets_all_of_a_node(mixed: PartitionNodes) -> None:
    silent = wanting(memory_per_processor=0)
    found = SlurmNeeds(mixed, whole_nodes=False).of(job("1", 4), silent)
    assert found == Need(chunks=2, processors=2, whole_nodes=True)


def test_of_a_job_that_may_run_elsewhere_no_more_counts_than_the_site_holds(mixed: PartitionNodes) -> None:
    large = wanting(tasks=50)
    found = SlurmNeeds(mixed, whole_nodes=False).of(job("1", 100, partitions=("short",)), large)
    assert found is not None
    assert found.chunks == 2 + 4 + 3 + 2
    own = SlurmNeeds(mixed, whole_nodes=False).of(job("1", 100), large)
    assert own is not None
    assert own.chunks == 50


def test_a_job_that_no_node_of_the_site_serves(mixed: PartitionNodes) -> None:
    needs = SlurmNeeds(mixed, whole_nodes=False)
    found = needs.of(job("1", 4), wanting(features="gold"))
    assert found is not None
    assert found.nodes == NOWHERE
    strange = needs.of(job("1", 4), wanting(features="a||b"))
    assert strange is not None
    assert strange.nodes is None


def test_without_a_wish_nothing_is_known(mixed: PartitionNodes) -> None:
    assert SlurmNeeds(mixed, whole_nodes=False).of(job("1", 4), None) is None
