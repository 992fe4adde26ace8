"""The arguments of sbatch, and what its answers mean."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.model import Request
from adaptor.resources import TaskSize
from backends.base import ChangeRefused, PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from backends.commands import CommandAnswer
from backends.donation import donation_terms
from backends.observed.site import SiteNodes
from backends.slurm.ordering import slot_margin
from backends.slurm.placing.shape import SlurmShape, shape_of
from backends.slurm.submitting import (
    accepted_id,
    arguments_of,
    changes,
    check_changed,
    donated_options,
    keeps_backslashes,
    log_of,
    own_reservation,
    step_gres,
)
from tests.backends.answering import answer_of
from tests.backends.orders import order

WORKER = ("python", "-m", "adaptor.worker")
ORDER = order(
    6, 601, TaskSize(processors=2), tag="adaptor-x-7", directory=Path("/home/u/100% mine"), worker=WORKER,
    environment={"ADAPTOR_PILOT": "7"},
)  # fmt: skip
SITE = SiteConfig(
    backend="slurm", partition="batch", account="phys", qos="long", extra_args=("--constraint=a&b", "--nice")
)


NO_NODES = SiteNodes(name="batch", listed={}, members={}, machines=())


def arguments(order: PilotOrder, per_node: int | None = None) -> list[str]:
    shape = shape_of(order, NO_NODES, per_node=per_node)
    return arguments_of(order, SITE, shape.options())


def test_a_job_may_wait_for_the_end_of_another() -> None:
    after = msgspec.structs.replace(ORDER, after="12", tag="adaptor-daemon-ab.2")
    assert "--dependency=afterany:12" in arguments(after)
    assert any('"kind":"daemon"' in word for word in arguments(after)), "operators find it by its comment"
    assert not [word for word in arguments(ORDER) if "dependency" in word]


def test_all_of_an_order_is_asked_for() -> None:
    assert arguments(ORDER) == [
        "--parsable",
        "--job-name=adaptor-x-7",
        "--time=11",
        "--output=/home/u/100%% mine/slurm-%j.out",
        "--chdir=/home/u/100% mine",
        "--no-requeue",
        "--no-kill",
        '--comment={"tool":"request-adaptor","kind":"request","tag":"adaptor-x-7"}',
        "--ntasks=3",
        "--cpus-per-task=2",
        "--partition=batch",
        "--account=phys",
        "--qos=long",
        "--constraint=a&b",
        "--nice",
    ]


def test_a_log_below_a_folder_with_a_backslash_has_a_name_that_sbatch_leaves_alone() -> None:
    order = msgspec.structs.replace(ORDER, directory=Path("/home/DOMAIN\\user/100%"))
    assert log_of(order) == "/home/DOMAIN\\\\user/100%/slurm.out"
    assert log_of(order, escapes=False) == "/dev/null"


@pytest.mark.parametrize(
    ("version", "keeps"),
    [
        ("22.05.8", True),
        ("24.11.5", True),
        ("26.05.5", False),
        ("26.11.0-rc1", False),
        ("", True),
        ("x.y", True),
    ],
)
def test_which_release_keeps_backslashes_in_a_path(version: str, keeps: bool) -> None:
    assert keeps_backslashes({"SLURM_VERSION": version}) is keeps


@pytest.mark.parametrize(("tr", "minutes"), [(1, 1), (60, 1), (61, 2), (3600, 60)])
def test_minutes_are_rounded_up(tr: int, minutes: int) -> None:
    order = msgspec.structs.replace(ORDER, request=Request(6, tr))
    assert f"--time={minutes}" in arguments(order)


def test_whole_nodes_are_asked_for_by_their_number() -> None:
    asked = arguments(ORDER, per_node=4)
    assert "--nodes=2" in asked
    assert "--exclusive" in asked
    assert not [word for word in asked if word.startswith("--ntasks")]


def test_memory_is_asked_for_by_the_processor() -> None:
    order = msgspec.structs.replace(ORDER, task=TaskSize(processors=2, memory=3 * 2**30 + 1))
    assert "--mem-per-cpu=1537M" in arguments(order)


def test_a_pilot_on_a_donated_node_asks_for_all_of_its_node_and_only_for_now() -> None:
    order = msgspec.structs.replace(ORDER, node="n7", task=TaskSize(processors=2, memory=2**30))
    donating = msgspec.structs.replace(
        SITE,
        donation=DonationConfig(mode="preemptible", partition="spare", extra_args=("--comment=ours",)),
    )
    found = arguments_of(order, donation_terms(donating), donated_options(order, 0))
    assert found[5:] == [
        "--no-requeue",
        "--no-kill",
        '--comment={"tool":"request-adaptor","kind":"donation","tag":"adaptor-x-7"}',
        "--nodes=1",
        "--nodelist=n7",
        "--exclusive",
        "--mem=0",
        "--deadline=now+13minutes",
        "--partition=spare",
        "--account=phys",
        "--comment=ours",
    ]


@pytest.mark.parametrize(
    ("donation", "partition", "account", "qos"),
    [
        (None, "batch", "phys", "long"),
        (DonationConfig(mode="agent"), "batch", "phys", "long"),
        (DonationConfig(mode="preemptible", qos="low"), "batch", "phys", "low"),
        (DonationConfig(mode="preemptible", partition="spare", account="free"), "spare", "free", None),
    ],
)
def test_under_which_terms_donated_nodes_are_made(
    donation: DonationConfig | None, partition: str, account: str, qos: str | None
) -> None:
    found = donation_terms(msgspec.structs.replace(SITE, donation=donation))
    assert (found.partition, found.account, found.qos) == (partition, account, qos)
    assert bool(found.extra_args) == (donation is None or donation.mode == "agent")


def test_the_own_reservation_is_known() -> None:
    assert own_reservation(SITE) is None
    ours = msgspec.structs.replace(SITE, extra_args=("--reservation=course",))
    assert own_reservation(ours) == "course"


def test_an_accepted_request_has_an_id() -> None:
    assert accepted_id(answer_of(0, "12;cluster\n", "sbatch: lua: welcome\n")) == "12"


@pytest.mark.parametrize(
    "complaint",
    [
        "sbatch: error: invalid partition specified: zz\n"
        "sbatch: error: Batch job submission failed: Invalid partition name specified",
        "sbatch: error: QOSMaxSubmitJobPerUserLimit\n"
        "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy",
        "sbatch: error: Batch job submission failed: Requested node configuration is not available",
        "sbatch: unrecognized option '--bogus'\nTry \"sbatch --help\" for more information",
    ],
)
def test_a_refusal_says_why(complaint: str) -> None:
    with pytest.raises(SubmitRefused) as refusal:
        accepted_id(answer_of(1, "", complaint))
    assert complaint.splitlines()[0] in str(refusal.value)


FAILED = "sbatch: error: Batch job submission failed"


@pytest.mark.parametrize(
    "answer",
    [
        answer_of(1, "", f"{FAILED}: Socket timed out on send/recv operation"),
        answer_of(1, "", f"{FAILED}: Zero Bytes were transmitted or received"),
        answer_of(1, "", f"{FAILED}: Unable to contact slurm controller (receive failure)"),
        answer_of(-9, "", ""),
        answer_of(1, "", ""),
        answer_of(0, "", ""),
        answer_of(0, "thank you for your job\n", ""),
    ],
)  # fmt: skip
def test_what_leaves_it_open_is_uncertain(answer: CommandAnswer) -> None:
    with pytest.raises(SubmitUncertain):
        accepted_id(answer)


def test_the_least_time_of_a_request_is_rounded_up_too() -> None:
    order = msgspec.structs.replace(ORDER, request=Request(6, 601, 121))
    assert arguments(order)[2:4] == ["--time=11", "--time-min=3"]


def test_a_controller_that_was_never_reached_has_no_request() -> None:
    complaint = (
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
    )
    with pytest.raises(SchedulerError) as failure:
        accepted_id(answer_of(1, "", complaint))
    assert type(failure.value) is SchedulerError


@pytest.mark.parametrize(
    ("parameters", "margin"),
    [
        ("", 100),
        ("bf_interval=2,sched_interval=2", 72),
        ("defer,bf_resolution=600,bf_interval=60", 670),
        ("bf_interval=-1,my_bf_resolution=7", 100),
    ],
)
def test_the_margin_follows_the_backfill_scheduler(parameters: str, margin: int) -> None:
    assert slot_margin({"SchedulerParameters": parameters}) == margin


def test_a_pilot_on_a_donated_node_gets_its_gpus_where_the_tasks_want_any() -> None:
    order = msgspec.structs.replace(ORDER, node="n7", task=TaskSize(gpus=0.5, gpu_type="a100"))
    assert donated_options(order, 4)[-1] == "--gpus-per-node=a100:4"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ntasks=4", "--cpus-per-task=2"], ""),
        (["--gpus-per-task=1"], "gpu: 0 1"),
        (["--gpus-per-task=a100:2"], "gpu:a100: 0 2"),
        (["--gpus-per-task=1g.5gb:1"], "gpu:1g.5gb: 0 1"),
        (["--exclusive", "--gpus-per-node=h100:4"], "gpu:h100: 4 0"),
        (["--gpus-per-task=1", "--gres=lustre:1"], "gpu: 0 1 lustre: 1 0"),
        (["--gres=shard:4"], "shard: 4 0"),
        (["--gres=gpu"], "gpu: 1 0"),
        (["--gres=gres/gpu:a100:2,lustre"], "gpu:a100: 2 0 lustre: 1 0"),
        (["--gpus-per-task", "2"], "gpu: 0 2"),
        (["--gres=gpu:1", "--gres=gpu:2"], "gpu: 2 0"),
        (["--gres=(,)", "--gpus-per-task=1"], "gpu: 0 1"),
        (["--gres"], ""),
        (["--gres=a b':2"], "'a b'\"'\"':' 2 0"),
    ],
)
def test_the_generic_resources_of_steps_are_those_of_the_request(arguments: list[str], words: str) -> None:
    assert step_gres(arguments) == words


QUEUED = order(6, 3540, TaskSize(processors=2))
NAMED = ["JobName=adaptor-x.hpc.7", "UserID=ann"]


def test_tasks_and_processors_go_together_and_nodes_never() -> None:
    of_tasks = SlurmShape(count=3, part=TaskSize(processors=2))
    asked = changes(QUEUED, NAMED, of_tasks, shrinks=False)
    assert asked == ["update", *NAMED, "TimeLimit=59", "NumTasks=3", "NumCPUs=6"]
    of_nodes = SlurmShape(count=3, part=TaskSize(processors=2), whole_nodes=True)
    asked = changes(QUEUED, NAMED, of_nodes, shrinks=False)
    assert asked == ["update", *NAMED, "TimeLimit=59", "NumTasks=3"]


def test_the_least_time_goes_with_the_limit_and_is_taken_back() -> None:
    """Slurm refuses a limit below the least time of the job."""
    part = SlurmShape(count=3, part=TaskSize(processors=2), whole_nodes=True)
    assert changes(QUEUED, NAMED, part, shrinks=True)[3:5] == ["TimeLimit=59", "TimeMin=0"]
    order = msgspec.structs.replace(QUEUED, request=Request(6, 3540, 601))
    assert changes(order, NAMED, part, shrinks=True)[3:5] == ["TimeLimit=59", "TimeMin=11"]


@pytest.mark.parametrize(
    ("status", "words", "refused"),
    [
        (1, "Job is no longer pending execution for job 7", True),
        (1, "Access/permission denied for job 7", True),
        (1, "Requested partition configuration not available now for job 7", True),
        (1, "Invalid job id specified for job 7", True),
        (1, "slurm_update error: Unable to contact slurm controller (connect failure)", False),
        (1, "slurm_update error: Socket timed out on send/recv operation", False),
        (-9, "", False),
    ],
)
def test_what_an_answer_means(status: int, words: str, refused: bool) -> None:
    with pytest.raises(SchedulerError) as raised:
        check_changed(answer_of(status, "", words))
    assert isinstance(raised.value, ChangeRefused) == refused


def test_silence_is_consent() -> None:
    check_changed(answer_of(0, "", ""))
