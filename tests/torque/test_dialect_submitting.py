"""The arguments of Torque's qsub and the words of its answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.config.schema import SiteConfig
from adaptor_torque.dialect import accepted_id, arguments_of, nodes_wanted, short_name
from adaptor_torque.parse import parse_wanted
from backends.base import SchedulerError, SubmitRefused, SubmitUncertain
from backends.commands import CommandAnswer
from backends.pbs.constraints import PbsShape
from tests.backends.answering import answer_of
from tests.backends.orders import order
from tests.backends.pbs.pbs_rows import pbs_shape

FOLDER = Path("/home/ada/pilots/7")


def arguments(site: SiteConfig, shape: PbsShape) -> list[str]:
    asked = order(6, 1805, tag="adaptor-ab12.hpc.7", directory=FOLDER)
    return arguments_of(asked, site, shape, FOLDER / "pilot.sh", per_node=4 // shape.part.processors)


def test_a_plain_request() -> None:
    found = arguments(SiteConfig(backend="pbs"), pbs_shape(6, 1, None, whole_nodes=False))
    assert " ".join(found) == (
        "-N adaptor.7 -S /bin/bash -r n -j oe -o /home/ada/pilots/7/pbs-pilot.out "
        "-l nodes=1:ppn=4+1:ppn=2 -l walltime=1805 -v ADAPTOR_TAG=adaptor-ab12.hpc.7 "
        "/home/ada/pilots/7/pilot.sh"
    )


def test_what_a_site_adds() -> None:
    site = SiteConfig(
        backend="pbs", partition="batch", account="astro", qos="high", extra_args=("-l", "feature=ib")
    )
    found = " ".join(arguments(site, pbs_shape(3, 2, 10**9, whole_nodes=False)))
    assert "-l nodes=1:ppn=4+1:ppn=2 -l walltime=1805" in found
    assert "-l mem=3000000000b -q batch -A astro -l qos=high -l feature=ib /home" in found


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        (pbs_shape(1, 1, None, whole_nodes=False), "1:ppn=1"),
        (pbs_shape(8, 1, None, whole_nodes=False), "2:ppn=4"),
        (pbs_shape(9, 1, None, whole_nodes=False), "2:ppn=4+1:ppn=1"),
        (pbs_shape(2, 3, None, whole_nodes=False), "2:ppn=3"),
        (pbs_shape(1, 6, None, whole_nodes=False), "1:ppn=6"),  # Torque has to say that no node is that large
        (pbs_shape(3, 4, None, whole_nodes=True), "3:ppn=4"),
        (pbs_shape(3, 2, None, whole_nodes=False, gpus=1), "1:ppn=4:gpus=2+1:ppn=2:gpus=1"),
        (pbs_shape(1, 4, None, whole_nodes=True, node="n3", gpus=2), "n3:ppn=4:gpus=2"),
    ],
)
def test_node_specifications(shape: PbsShape, wanted: str) -> None:
    assert nodes_wanted(shape, per_node=4 // shape.part.processors) == wanted


@given(st.integers(1, 500), st.integers(1, 64), st.integers(1, 128))
def test_a_specification_has_every_processor_and_splits_no_task(chunks: int, each: int, size: int) -> None:
    wanted = nodes_wanted(pbs_shape(chunks, each, None, whole_nodes=False), per_node=size // each)
    assert sum(part.count * part.each.processors for part in parse_wanted(wanted)) == chunks * each
    per_node = [int(part.rpartition("=")[2]) for part in wanted.split("+")]
    assert all(count % each == 0 for count in per_node)
    assert all(count <= max(size, each) for count in per_node)


@given(st.text(min_size=1))
def test_every_name_is_one_that_torque_takes(tag: str) -> None:
    name = short_name(tag)
    assert len(name) <= 15
    assert name.isascii()
    assert name[0].isalpha()
    assert name.isprintable()
    assert " " not in name


def test_the_id_is_found_among_greetings() -> None:
    assert accepted_id(answer_of(0, "Welcome to the cluster.\n12.head.example.org\n", "")) == (
        "12.head.example.org"
    )


@pytest.mark.parametrize(
    "complaint",
    [
        "qsub: submit error (Unknown queue MSG=requested queue not found)",
        "qsub: submit error (Job exceeds queue resource limits MSG=cannot satisfy queue max walltime)",
        "qsub: submit error (Queue is not enabled MSG=queue is disabled: long)",
        "qsub: submit error (Maximum number of jobs already in queue for user)",
        "qsub: Your job has been administratively rejected by the queueing system.",
        "qsub: illegal -l value",
        "qsub can not be run as root",
    ],
)
def test_refusals(complaint: str) -> None:
    with pytest.raises(SubmitRefused, match=r"Torque refused the request: qsub"):
        accepted_id(answer_of(170, "", f"{complaint}\n"))


@pytest.mark.parametrize(
    "complaint",
    [
        "qsub: cannot connect to server head.example.org (errno=111) Connection refused",
        "qsub: script file '/home/ada/pilots/7/pilot.sh' cannot be loaded - No such file or directory",
    ],
)
def test_requests_that_never_arrived(complaint: str) -> None:
    with pytest.raises(SchedulerError) as error:
        accepted_id(answer_of(111, "", f"{complaint}\n"))
    assert not isinstance(error.value, SubmitRefused | SubmitUncertain)


@pytest.mark.parametrize(
    "answer",
    [
        answer_of(0, "thank you\n", ""),
        answer_of(1, "", "qsub: submit error (Error reading data from socket)\n"),
        answer_of(1, "", "qsub: submit error (Request not allowed: Server shutting down)\n"),
        answer_of(1, "", "Connection to server timed out. Trying again"),
        answer_of(1, "", ""),
        answer_of(-9, "", "qsub: submit error (Unknown queue)\n"),
    ],
)
def test_answers_that_leave_it_open(answer: CommandAnswer) -> None:
    with pytest.raises(SubmitUncertain):
        accepted_id(answer)
