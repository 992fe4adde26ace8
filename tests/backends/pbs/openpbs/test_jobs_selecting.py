"""What jobs of OpenPBS ask for, as it prints it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.observed.rows import Amounts
from backends.pbs.fields import PbsRecord, amounts_of, parse_long
from backends.pbs.openpbs.hardware import nodes_of
from backends.pbs.openpbs.jobs import everyones_jobs, gpu_type, parse_select, placing
from backends.pbs.rows import PbsChunk, PbsNode

MB = 2**20


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("1:ncpus=4", [PbsChunk(each=Amounts(4))]),
        ("3:ncpus=3:mpiprocs=3", [PbsChunk(count=3, each=Amounts(3))]),
        (
            "ncpus=2:mem=1gb+2:ngpus=1",
            [PbsChunk(each=Amounts(2, 1024 * MB)), PbsChunk(count=2, each=amounts_of(1, 0, 1))],
        ),
        (
            "1:mem=2gb:ncpus=3:host=n1:bigmem=True",
            [PbsChunk(each=Amounts(3, 2048 * MB), traits=(("bigmem", "True"), ("host", "n1")))],
        ),
        (
            '2:ncpus=1:site="a+b:c"+1',
            [
                PbsChunk(count=2, each=Amounts(1), traits=(("site", "a+b:c"),)),
                PbsChunk(each=Amounts(1)),
            ],
        ),
        (
            "1:ncpus=1:ngpus=2:gpu_type=3090:scratch=10gb:hbm=1.5gb",
            [
                PbsChunk(each=amounts_of(1, 0, 2), traits=(("gpu_type", "3090"),)),
            ],
        ),
        ("", []),
    ],
)
def test_chunks(text: str, chunks: list[PbsChunk]) -> None:
    assert list(parse_select(text)) == chunks


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("pack", "pack"),
        ("scatter:excl", "scatter"),
        ("vscatter", "free"),
        ("free:group=switch", "free"),
        ("", "free"),
    ],
)
def test_places(place: str, told: str) -> None:
    assert placing(place) == told


def test_a_job_whose_request_is_not_understood_holds_what_it_holds() -> None:
    values = {"job_state": "R", "Resource_List.select": "1:ncpus=many", "exec_vnode": "(n1:ncpus=2:ngpus=1)"}
    (job,) = everyones_jobs([PbsRecord("1.s", values)])
    assert (job.chunks, job.nodes) == ((), {"n1": amounts_of(2, 0, 1)})


def test_what_the_scheduler_itself_reads_counts_where_we_see_it() -> None:
    values = {"job_state": "Q", "Resource_List.select": "1:ncpus=2", "schedselect": "1:ncpus=2:mem=1mb"}
    (job,) = everyones_jobs([PbsRecord("1.s", values)])
    assert job.chunks == (PbsChunk(each=Amounts(2, MB)),)


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_is_asked_for_is_read(chunks: list[tuple[int, int, int, int]]) -> None:
    text = "+".join(f"{count}:ncpus={cpus}:mem={mem}mb:ngpus={gpus}" for count, cpus, mem, gpus in chunks)
    assert parse_select(text) == tuple(
        PbsChunk(count=count, each=amounts_of(cpus, mem * MB, gpus)) for count, cpus, mem, gpus in chunks
    )


NODE = """\
n1
     state = free
     resources_available.ncpus = 8
     resources_available.mem = 16gb
     resources_available.ngpus = 4
     resources_available.gpu_model = a100,any
     resources_assigned.mem = 1048576kb
     resources_assigned.ncpus = 3
     resources_assigned.ngpus = 1
"""


def nodes(text: str) -> list[PbsNode]:
    return nodes_of(parse_long(text, ""))


def test_a_node_has_gpus_of_a_type_and_tells_what_is_held_of_it() -> None:
    (node,) = nodes(NODE)
    assert node.has == amounts_of(8, 16 * 1024 * MB, 4, "a100")
    assert node.gpu_type == "a100"
    assert node.assigned == amounts_of(3, 1024 * MB, 1)


def test_where_sites_name_the_type() -> None:
    assert gpu_type({"gpu_type": '"v100"', "gpu_model": "a100"}) == "v100"
    assert gpu_type({"ngpus": "2"}) == ""
