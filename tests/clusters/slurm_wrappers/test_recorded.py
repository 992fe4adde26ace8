"""What Slurm's wrappers of Torque's commands were recorded to print."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.config.schema import SiteConfig
from adaptor.resources import TaskSize
from backends.base import PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from backends.commands import CommandAnswer, Commands
from backends.pbs.constraints import PbsShape
from backends.pbs.fields import parse_time
from backends.pbs.rows import PbsJob
from tests.backends import orders
from tests.backends.answering import answer_of
from tests.backends.pbs.pbs_rows import held, pbs_shape
from tests.clusters.slurm_wrappers.dialect import SlurmWrappers
from tests.clusters.slurm_wrappers.parse import parse_held_counts, parse_jobs, parse_nodes, parse_queues
from tests.clusters.slurm_wrappers.submitting import accepted_id, arguments_of
from tests.clusters.slurm_wrappers.text import listed_ids

FIXTURES = Path(__file__).parents[3] / "fixtures" / "torque" / "slurm-wrappers"
SITE = SiteConfig(backend="pbs", dialect="torque", partition="batch")


def text(name: str) -> str:
    return (FIXTURES / name).read_bytes().decode(errors="replace")


def jobs(name: str = "busy-qstat-f.txt") -> dict[str, PbsJob]:
    return {job.id: job for job in parse_jobs(text(name))}


def test_a_running_job() -> None:
    job = jobs()["1"]
    assert (job.tag, job.owner, job.state, job.queue) == ("adaptor-abc.hpc.1", "root", "R", "batch")
    assert (job.processors, job.nodes, job.limit) == (6, held({"n1": 4, "n2": 2}), 600)
    assert job.start == parse_time("Sat Nov 21 11:34:40 2026")
    assert job.end is None
    assert job.planned_start is None


def test_a_waiting_job_has_its_plan() -> None:
    job = jobs()["2"]
    assert (job.state, job.processors, job.start, job.nodes) == ("Q", 16, None, {})
    assert job.planned_start == parse_time("Sat Nov 21 11:44:40 2026")


def test_a_held_job_is_told_by_its_priority() -> None:
    job = jobs()["3"]
    assert (job.state, job.planned_start) == ("H", None)


def test_an_ended_job_says_when_but_not_how() -> None:
    job = jobs()["5"]
    assert (job.state, job.exit_status, job.nodes) == ("C", None, held({"n2": 1}))
    assert job.start is not None
    assert job.end == job.start + 1


def test_a_job_that_was_cancelled_while_it_waited_never_started() -> None:
    ended = jobs("ended-qstat-f.txt")
    assert (ended["2"].state, ended["2"].start, ended["2"].nodes) == ("C", None, {})
    assert (ended["1"].state, ended["1"].nodes) == ("C", held({"n1": 4, "n2": 2}))


def test_a_job_without_a_limit() -> None:
    assert jobs()["9"].limit == math.inf


def test_odd_names_hide_no_other_job() -> None:
    assert jobs().keys() >= {"1", "2", "3", "4", "5", "7", "8", "9"}
    assert jobs()["8"].owner == "nobody"


@given(st.text(min_size=1))
def test_whatever_a_job_is_called_the_others_are_read(name: str) -> None:
    printed = text("busy-qstat-f.txt").replace("Job_Name = held", f"Job_Name = {name}")
    read = parse_jobs(printed)
    assert jobs()["2"] in read
    assert jobs()["4"] in read


def test_ids_are_listed() -> None:
    assert listed_ids(text("busy-qstat-u.txt")) == ["1", "2", "3", "4", "5", "6", "7", "9"]


def test_nodes_in_use() -> None:
    nodes = {node.name: node for node in parse_nodes(text("busy-pbsnodes.txt"))}
    assert {node.processors for node in nodes.values()} == {4}
    assert (*nodes["n1"].states, nodes["n1"].assigned.processors) == ("job-exclusive", 4)
    assert (*nodes["n2"].states, nodes["n2"].assigned.processors) == ("free", 0)


def test_nodes_out_of_service() -> None:
    states = {node.name: node.states for node in parse_nodes(text("trouble-pbsnodes.txt"))}
    assert states == {"n1": {"free"}, "n2": {"offline"}, "n3": {"offline"}, "n4": {"free"}}


def test_queues_with_their_limits() -> None:
    queues = {queue.name: queue for queue in parse_queues(text("queues.txt"), text("limits.txt"))}
    assert {name: queue.max_seconds for name, queue in queues.items()} == {
        "batch": 4 * 3600,
        "short": 600,
        "scavenger": 3600,
        "closed": math.inf,
        "endless": math.inf,
    }
    assert queues["batch"].enabled
    assert queues["batch"].started


def test_a_limit_of_nodes_and_a_name_that_is_cut_off() -> None:
    limits = "a_queue_with_a_lo   --      --    02:00:00   3    4   3 --  E R \n"
    queues = "Queue:\ta_queue_with_a_long_name\n\tenabled = yes\n\tstarted = yes\n\n"
    (queue,) = parse_queues(queues, limits.replace("a_queue_with_a_lo", "a_queue_with_a_l"))
    assert (queue.max_seconds, queue.max_nodes) == (7200, 3)


def order(directory: str = "/home/ada/pilots/7") -> PilotOrder:
    return orders.order(6, task=TaskSize(processors=2), tag="adaptor-abc.hpc.7", directory=Path(directory))


def arguments(shape: PbsShape, site: SiteConfig = SITE, directory: str = "/home/ada/pilots/7") -> str:
    script = Path(directory) / "pilot.sh"
    return " ".join(arguments_of(order(directory), site, shape, script, per_node=4 // shape.part.processors))


def test_tasks_lie_wherever_there_is_room() -> None:
    assert arguments(pbs_shape(3, 2, None, whole_nodes=False)) == (
        "-N adaptor-abc.hpc.7 -r n -j oe -o /home/ada/pilots/7/pbs-pilot.out "
        "-l mppwidth=3,mppdepth=2,walltime=600 -q batch /home/ada/pilots/7/pilot.sh"
    )


def test_whole_nodes_are_asked_for_as_nodes() -> None:
    assert "-l nodes=2:ppn=4,walltime=600" in arguments(pbs_shape(2, 4, None, whole_nodes=True))


def test_memory_is_enough_for_all_tasks_that_a_node_may_get() -> None:
    assert "mem=600M," in arguments(pbs_shape(3, 2, 300 * 2**20, whole_nodes=False))
    assert "mem=300M," in arguments(pbs_shape(1, 2, 300 * 2**20, whole_nodes=False))


def test_a_shell_will_read_the_paths() -> None:
    found = arguments(pbs_shape(1, 1, None, whole_nodes=False), directory="/home/ada/my $(files) 5%")
    assert "-o '/home/ada/my $(files) 5%%/pbs-pilot.out'" in found
    assert found.endswith("'/home/ada/my $(files) 5%/pilot.sh'")


def test_a_qos_cannot_be_said() -> None:
    with pytest.raises(SubmitRefused, match="backend: slurm"):
        arguments(pbs_shape(1, 1, None, whole_nodes=False), SiteConfig(backend="pbs", qos="low"))


def test_a_donated_node_is_asked_for_by_name() -> None:
    assert "-l nodes=n3:ppn=4,walltime=600" in arguments(pbs_shape(1, 4, None, whole_nodes=False, node="n3"))


def test_the_id_is_what_qsub_prints() -> None:
    assert accepted_id(answer_of(0, "12\n", "")) == "12"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("qsub-unknown-queue.txt", "invalid partition specified: nosuch"),
        ("qsub-over-walltime.txt", "Requested time limit is invalid"),
        ("qsub-too-large.txt", "More processors requested than permitted"),
    ],
)
def test_a_refusal_is_told_in_the_words_of_slurm(name: str, words: str) -> None:
    with pytest.raises(SubmitRefused, match=words):
        accepted_id(answer_of(1, text(name), ""))


def test_a_server_that_is_down_has_not_taken_the_request() -> None:
    with pytest.raises(SchedulerError, match="Unable to contact") as error:
        accepted_id(answer_of(1, text("down-qsub.txt"), ""))
    assert not isinstance(error.value, SubmitRefused | SubmitUncertain)


@pytest.mark.parametrize(
    "answer",
    [
        answer_of(0, "thank you\n", ""),
        answer_of(255, "", "Invalid time limit specified\n"),
        answer_of(-15, "", ""),
        answer_of(
            1, "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n", ""
        ),
    ],
)
def test_an_answer_that_leaves_it_open(answer: CommandAnswer) -> None:
    with pytest.raises(SubmitUncertain):
        accepted_id(answer)


@pytest.mark.parametrize("parse", [parse_jobs, parse_nodes])
def test_nothing_at_all_is_no_error(parse: Callable[[str], list[object]]) -> None:
    assert parse("") == []


def test_what_qdel_says_of_jobs_that_are_gone() -> None:
    wrappers = SlurmWrappers(Commands(lambda own: own, 10))
    assert wrappers.is_over(answer_of(2, "", ""))
    assert not wrappers.is_over(answer_of(1, text("down-qdel.txt"), ""))
    assert not wrappers.is_over(answer_of(2, "", "Can't locate Slurm.pm in @INC\n"))


def test_exec_host_counts_processors() -> None:
    assert parse_held_counts("n1/4+n2/2") == {"n1": 4, "n2": 2}
