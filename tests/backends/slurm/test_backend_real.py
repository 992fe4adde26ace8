"""The backend against a real Slurm of 4 nodes with 4 processors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor.config.loading import parse_config
from adaptor.config.schema import SiteConfig
from adaptor.model import Request
from adaptor.reports import JobReport, JobState, OwnJob
from adaptor.resources import TaskSize
from adaptor.units import Duration
from backends.base import ChangeRefused, PilotOrder, SchedulerError, SubmitRefused
from backends.slurm.backend import SlurmBackend
from backends.slurm.discover import check_site, describe_sites
from tests.backends.orders import own, runnable
from tests.clusters.slurm import ThrowawaySlurm
from tests.living import until

pytestmark = pytest.mark.slurm

SITE = SiteConfig(backend="slurm", command_timeout=Duration(20))
STAY = "trap 'touch \"$ADAPTOR_DIRECTORY/told-$ADAPTOR_NODE\"; exit 0' TERM; "
STAY += 'touch "$ADAPTOR_DIRECTORY/up-$ADAPTOR_NODE"; sleep 600 & wait'
"""A worker that stays until it is told to leave."""


class Pilots:
    """Orders of one test, each with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def order(self, tag: str, p: int, tr: int, worker: str = STAY, per_task: int = 1) -> PilotOrder:
        task = TaskSize(processors=per_task)
        return runnable(self._folder, tag, worker, p, tr, task, environment={"ADAPTOR_PILOT": "7"})

    def has(self, tag: str, name: str) -> bool:
        return (self._folder / tag / name).exists()

    def files(self, tag: str, pattern: str) -> dict[str, str]:
        return {path.name: path.read_text() for path in (self._folder / tag).glob(pattern)}


@pytest.fixture
def pilots(tmp_path: Path) -> Pilots:
    return Pilots(tmp_path)


def report_of(backend: SlurmBackend, id: str) -> JobReport:
    (report,) = backend.jobs([id], "no such tag")
    return report


def reaches(backend: SlurmBackend, id: str, state: JobState) -> JobReport:
    until(lambda: report_of(backend, id).state is state, f"job {id} being {state.value}")
    return report_of(backend, id)


def local_job(slurm: ThrowawaySlurm, *options: str, seconds: int = 900) -> str:
    return slurm.run(
        ["sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap=sleep {seconds}"]
    ).strip()


def test_each_node_has_one_worker_with_its_share(slurm: ThrowawaySlurm, pilots: Pilots) -> None:
    backend = SlurmBackend(SITE)
    say = 'env > "$ADAPTOR_DIRECTORY/env-$ADAPTOR_NODE"'
    id = backend.submit(pilots.order("uneven", 6, 600, say, per_task=2))
    report = reaches(backend, id, JobState.COMPLETED)
    files = pilots.files("uneven", "env-*")
    seen = [dict(line.split("=", 1) for line in text.splitlines() if "=" in line) for text in files.values()]
    assert sorted(each["ADAPTOR_PROCESSORS"] for each in seen) == ["2", "4"]
    assert all(each["SLURM_CPUS_ON_NODE"] == each["ADAPTOR_PROCESSORS"] for each in seen)
    assert {each["ADAPTOR_NODE"] for each in seen} == set(report.nodes) == {"n1", "n2"}
    assert {each["SLURMD_NODENAME"] for each in seen} == set(report.nodes)
    assert report.start is not None
    assert all(float(each["ADAPTOR_PILOT_END"]) == report.start + 600 for each in seen)


@pytest.mark.parametrize(
    "name", ["DOMAIN\\user", "back\\\\slashes\\", "50%j %x", "a 'b' \"c\"", "$HOME `id`", "é ü,=;&*"]
)
def test_folders_may_have_any_names(slurm: ThrowawaySlurm, tmp_path: Path, name: str) -> None:
    """Homes of an Active Directory have a backslash in their paths."""
    (tmp_path / name).mkdir()
    order = runnable(tmp_path / name, "odd", 'echo here > "$ADAPTOR_DIRECTORY/said"')
    backend = SlurmBackend(SITE)
    id = backend.submit(order)
    reaches(backend, id, JobState.COMPLETED)
    assert (order.directory / "said").read_text() == "here\n"
    assert {path.name for path in order.directory.iterdir()} >= {f"slurm-{id}.out", "pilot.sh"}


def test_the_state_of_a_queue_of_known_shape(slurm: ThrowawaySlurm) -> None:
    backend = SlurmBackend(SITE)
    running = local_job(slurm, "-N2", "--exclusive", "-t", "60")
    reaches(backend, running, JobState.RUNNING)
    waiting = local_job(slurm, "-N4", "--exclusive", "-t", "30")
    array = local_job(slurm, "-n16", "-t", "20", "--array=1-3")
    local_job(slurm, "-n1", "-t", "10", "--hold")
    local_job(slurm, "-n1", "-t", "20", "-p", "short")
    until(lambda: report_of(backend, waiting).planned_start is not None, "a plan for the waiting job")
    until(
        lambda: all(
            job.id != waiting or job.planned_start is not None for job in backend.queue_state().pending
        ),
        "the plan in the queue",
    )
    state = backend.queue_state()
    assert state.processors == 16
    ((one,), pending) = (state.running, state.pending)
    start = report_of(backend, running).start
    assert start is not None
    assert (one.id, one.processors, one.end) == (running, 8, start + 3600)
    assert [job.id for job in pending] == [waiting, f"{array}_1", f"{array}_2", f"{array}_3"]
    assert [(job.processors, job.tr) for job in pending] == [(16, 1800.0), *[(16, 1200.0)] * 3]
    assert pending[0].planned_start == one.end


def test_a_request_takes_the_hole_before_a_planned_job(slurm: ThrowawaySlurm, pilots: Pilots) -> None:
    backend = SlurmBackend(SITE)
    running = local_job(slurm, "-N2", "--exclusive", "-t", "20")
    reaches(backend, running, JobState.RUNNING)
    planned = local_job(slurm, "-N4", "--exclusive", "-t", "30")
    until(lambda: report_of(backend, planned).planned_start is not None, "a plan")
    state = backend.queue_state()
    (held,) = state.running
    hole = held.end - state.now
    tr = int((hole - backend.slot_margin) // 60 * 60)
    fitting = backend.submit(pilots.order("fitting", 8, tr))
    reaches(backend, fitting, JobState.RUNNING)
    too_long = backend.submit(pilots.order("too-long", 1, int(hole) + 120))
    until(lambda: report_of(backend, too_long).reason in ("Resources", "Priority"), "a second look")
    assert report_of(backend, planned).planned_start == held.end


def test_a_request_that_can_never_start_says_so(slurm: ThrowawaySlurm, pilots: Pilots) -> None:
    backend = SlurmBackend(msgspec.structs.replace(SITE, partition="short"))
    id = backend.submit(pilots.order("never", 1, 3600))
    until(lambda: report_of(backend, id).never != "", "the reason")
    assert report_of(backend, id).reason in ("PartitionConfig", "PartitionTimeLimit")
    backend.cancel(own(backend, id))
    report = reaches(backend, id, JobState.CANCELLED)
    assert report.start is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"partition": "short", "extra_args": ("--licenses=gold",)}, "license"),
        ({"constraint": "gold"}, "leave none of the nodes of partition batch"),
        ({"extra_args": ("--no-such-option",)}, "no-such-option"),
    ],
)
def test_a_refusal_has_slurms_own_words(
    slurm: ThrowawaySlurm, pilots: Pilots, changes: dict[str, object], words: str
) -> None:
    backend = SlurmBackend(msgspec.structs.replace(SITE, **changes))
    with pytest.raises(SubmitRefused, match=words):
        backend.submit(pilots.order("refused", 1, 60))
    assert backend.jobs([], "refused") == []


def test_a_preempted_pilot_tells_its_workers_and_is_called_so(slurm: ThrowawaySlurm, pilots: Pilots) -> None:
    backend = SlurmBackend(msgspec.structs.replace(SITE, partition="scavenger"))
    id = backend.submit(pilots.order("donated", 16, 1800))
    until(lambda: all(pilots.has("donated", f"up-n{n}") for n in range(1, 5)), "all workers")
    local_job(slurm, "-N1", "--exclusive", "-t", "5", seconds=1)
    reaches(backend, id, JobState.PREEMPTED)
    # Slurm calls the job preempted when it has sent the signals, and kills it soon: a busy node may be late.
    until(lambda: bool(pilots.files("donated", "told-*")), "the workers are told")


def test_nodes_are_given_back_while_the_others_work(slurm: ThrowawaySlurm, pilots: Pilots) -> None:
    backend = SlurmBackend(SITE)
    leave = f'if [ "$ADAPTOR_NODE" != n1 ]; then exit 0; fi; {STAY}'
    id = backend.submit(pilots.order("shrinking", 12, 600, leave))
    until(lambda: pilots.has("shrinking", "up-n1"), "the worker on n1")
    backend.release(OwnJob(id, "shrinking"), ["n2", "n3"])
    until(lambda: report_of(backend, id).nodes == ("n1",), "the release")
    until(lambda: sum(job.processors for job in backend.queue_state().running) == 4, "free processors")
    assert report_of(backend, id).state is JobState.RUNNING
    assert not pilots.has("shrinking", "told-n1")
    with pytest.raises(SchedulerError, match="can give back none of n1"):
        backend.release(OwnJob(id, "shrinking"), ["n1"])


@pytest.fixture
def without_n2(slurm: ThrowawaySlurm) -> Iterator[Callable[[], None]]:
    """A function that pulls the plug of node n2."""

    def pull() -> None:
        slurm.stop_node("n2")
        slurm.run(["scontrol", "update", "nodename=n2", "state=down", "reason=test"])

    yield pull
    slurm.start_node("n2")


def test_a_pilot_survives_the_loss_of_a_node(
    slurm: ThrowawaySlurm, pilots: Pilots, without_n2: Callable[[], None]
) -> None:
    backend = SlurmBackend(SITE)
    id = backend.submit(pilots.order("hurt", 8, 600))
    until(lambda: pilots.has("hurt", "up-n1") and pilots.has("hurt", "up-n2"), "both workers")
    without_n2()
    until(lambda: backend.queue_state().processors == 12, "the node out of service")
    assert report_of(backend, id).state is JobState.RUNNING
    assert not pilots.has("hurt", "told-n1")


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_a_worker_that_is_killed_takes_no_other_node_with_it(
    slurm: ThrowawaySlurm, pilots: Pilots, node: str
) -> None:
    backend = SlurmBackend(SITE)
    die = f'if [ "$ADAPTOR_NODE" = {node} ]; then touch "$ADAPTOR_DIRECTORY/dies"; kill -9 $$; fi; {STAY}'
    id = backend.submit(pilots.order("killed", 8, 600, die))
    (other,) = {"n1", "n2"} - {node}
    until(lambda: pilots.has("killed", f"up-{other}") and pilots.has("killed", "dies"), "both workers")
    steps = ["squeue", "--noheader", "--steps", "--format=%i", f"--jobs={id}"]
    until(lambda: len(slurm.run(steps).split()) == 2, "the end of the step")
    assert report_of(backend, id).state is JobState.RUNNING
    assert not pilots.has("killed", f"told-{other}")


def test_a_draining_node_is_out_of_service(slurm: ThrowawaySlurm) -> None:
    backend = SlurmBackend(SITE)
    id = local_job(slurm, "-n6", "-t", "10")
    reaches(backend, id, JobState.RUNNING)
    slurm.run(["scontrol", "update", "nodename=n1", "state=drain", "reason=test"])
    state = backend.queue_state()
    assert state.processors == 12
    assert [job.processors for job in state.running] == [2]  # of its six, four are on the other node


def test_whole_nodes(slurm: ThrowawaySlurm, pilots: Pilots) -> None:
    backend = SlurmBackend(msgspec.structs.replace(SITE, whole_nodes=True, processors_per_node=4))
    id = backend.submit(pilots.order("whole", 8, 600))
    narrow = local_job(slurm, "-n1", "-t", "10")
    reaches(backend, id, JobState.RUNNING)
    reaches(backend, narrow, JobState.RUNNING)
    held = {job.id: job.processors for job in backend.queue_state().running}
    assert held == {id: 8, narrow: 4}


@pytest.fixture
def stopped(slurm: ThrowawaySlurm) -> Iterator[None]:
    slurm.stop_controller()
    yield
    slurm.start_controller()
    slurm.wait_ready()


def test_without_slurmctld_nothing_is_concluded(slurm: ThrowawaySlurm, pilots: Pilots, stopped: None) -> None:
    backend = SlurmBackend(msgspec.structs.replace(SITE, command_timeout=Duration(3)))
    for question in (
        backend.queue_state,
        lambda: backend.jobs(["1"], "x"),
        lambda: backend.cancel([OwnJob("1", "x")]),
        lambda: backend.submit(pilots.order("never-sent", 1, 60)),
    ):
        with pytest.raises(SchedulerError):
            question()


def test_a_pilot_goes_on_while_slurmctld_is_away(slurm: ThrowawaySlurm, pilots: Pilots) -> None:
    backend = SlurmBackend(SITE)
    id = backend.submit(pilots.order("steady", 4, 600))
    until(lambda: pilots.has("steady", "up-n1"), "the worker")
    slurm.stop_controller()
    slurm.start_controller()
    slurm.wait_ready()
    assert reaches(backend, id, JobState.RUNNING).nodes == ("n1",)
    assert not pilots.has("steady", "told-n1")


def test_a_described_cluster_checks_without_errors(slurm: ThrowawaySlurm) -> None:
    config = parse_config(describe_sites(), "described")
    site = config.sites["batch"]
    assert (site.partition, site.processors_per_node) == ("batch", 4)
    assert (site.limits.max_proc, site.limits.max_tr) == (16, 4 * 3600)
    findings = check_site(site)
    assert [finding for finding in findings if finding.level == "error"] == []
    assert [finding.text.split()[0] for finding in findings if finding.level == "warning"] == ["sacct"]


def test_a_site_that_does_not_fit_is_told_what_is_wrong(slurm: ThrowawaySlurm) -> None:
    wrong = parse_config(
        "sites: {x: {backend: slurm, partition: short, processors_per_node: 3, whole_nodes: true, "
        "limits: {max_proc: 64, max_tr: 2h}}}",
        "wrong",
    ).sites["x"]
    errors = [finding.text for finding in check_site(wrong) if finding.level == "error"]
    assert [text.split()[0] for text in errors] == [
        "limits.max_proc",
        "limits.max_tr",
        "processors_per_node",
        "Slurm",
    ]
    assert errors[-1].startswith("Slurm would refuse 16 processors for 2h: ")
    (missing,) = check_site(msgspec.structs.replace(wrong, partition="night"))
    assert missing.level == "error"
    assert "no partition night" in missing.text


MINUTE = 60


@pytest.fixture
def backend(slurm: ThrowawaySlurm) -> SlurmBackend:
    """It has seen the queue: half of the nodes are free for 15 minutes, then all are planned for a job."""
    backend = SlurmBackend(SITE)
    running = local_job(slurm, "-N2", "--exclusive", "-t", "15")
    reaches(backend, running, JobState.RUNNING)
    planned = local_job(slurm, "-N4", "--exclusive", "-t", "30")
    until(lambda: report_of(backend, planned).planned_start is not None, "a plan")
    backend.queue_state()
    return backend


def asking(order: PilotOrder, p: int, tr: int, least: int | None) -> PilotOrder:
    return msgspec.structs.replace(order, request=Request(p, tr, least))


def hole_of(backend: SlurmBackend, started: JobReport) -> float:
    """Seconds from its start to the end of the job beside it."""
    ends = [job.end for job in backend.queue_state().running if job.id != started.id]
    assert started.start is not None
    return ends[0] - started.start


def test_a_request_with_a_least_time_gets_the_hole_where_the_release_is_said_to_give_it(
    backend: SlurmBackend, pilots: Pilots
) -> None:
    say = f'echo "$ADAPTOR_PILOT_END" >"$ADAPTOR_DIRECTORY/end-$ADAPTOR_NODE"; {STAY}'
    id = backend.submit(asking(pilots.order("hole", 8, 3600, say), 8, 3600, 2 * MINUTE))
    report = reaches(backend, id, JobState.RUNNING)
    hole = hole_of(backend, report)
    assert (report.granted, report.limit) == (report.granted, report.granted)
    assert report.granted is not None
    if backend.shrink_margin is None:
        assert report.granted == 2 * MINUTE, "this release gives the least time alone: see shrink_margin"
        return
    assert hole - 2 * MINUTE < report.granted <= hole, "but for whole minutes and bf_resolution"
    until(lambda: len(pilots.files("hole", "up-*")) == 2, "both workers")
    assert report.start is not None
    ends = {float(text) for text in pilots.files("hole", "end-*").values()}
    assert ends == {report.start + report.granted}, "the workers are told what the job got"


def test_a_queued_request_becomes_one_that_may_shrink_and_stays_as_it_started(
    backend: SlurmBackend, pilots: Pilots
) -> None:
    if backend.shrink_margin is None:
        pytest.skip("this release gives requests with a least time no whole hole")
    order = pilots.order("changed", 8, 3600)
    id = backend.submit(order)
    until(lambda: report_of(backend, id).reason in ("Resources", "Priority"), "it has been looked at")
    backend.reshape(id, asking(order, 8, 3600, 20 * MINUTE))
    backend.reshape(id, asking(order, 8, 10 * MINUTE + 3000, None))
    assert report_of(backend, id).limit == 3600
    backend.reshape(id, asking(order, 8, 3600, 3 * MINUTE))
    report = reaches(backend, id, JobState.RUNNING)
    assert report.granted is not None
    assert hole_of(backend, report) - 2 * MINUTE < report.granted
    with pytest.raises(ChangeRefused):
        backend.reshape(id, asking(order, 8, 2 * MINUTE, MINUTE))
    assert report_of(backend, id).granted == report.granted, "what has started keeps what it got"


def test_one_that_starts_in_between_leaves_less_and_a_least_time_beyond_that_waits(
    backend: SlurmBackend, slurm: ThrowawaySlurm, pilots: Pilots
) -> None:
    """The planner saw 15 minutes; meanwhile a job was planned that leaves 8."""
    if backend.shrink_margin is None:
        pytest.skip("this release gives requests with a least time no whole hole")
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 8 * MINUTE))
    held = [f"StartTime={start}", "Duration=60", "Nodes=ALL", "Users=root", "Flags=IGNORE_JOBS"]
    slurm.run(["scontrol", "create", "reservation", "ReservationName=between", *held])
    try:
        waits = backend.submit(asking(pilots.order("waits", 4, 900), 4, 14 * MINUTE, 10 * MINUTE))
        takes = backend.submit(asking(pilots.order("takes", 4, 900), 4, 14 * MINUTE, 2 * MINUTE))
        report = reaches(backend, takes, JobState.RUNNING)
        assert report.granted is not None
        assert 5 * MINUTE <= report.granted <= 8 * MINUTE
        assert report_of(backend, waits).state is JobState.QUEUED
    finally:
        backend.cancel(own(backend, waits, takes))
        slurm.run(["scontrol", "delete", "ReservationName=between"])


def test_limits_are_those_of_the_last_look(slurm: ThrowawaySlurm) -> None:
    """An administrator lowers MaxTime, and with it what bounds the nodes, before a maintenance."""
    backend = SlurmBackend(SITE)
    before = backend.queue_state()
    assert (before.allowed.max_tr, before.processors) == (4 * 3600, 16)
    partition = ["scontrol", "update", "PartitionName=batch"]
    slurm.run([*partition, "MaxTime=5", "MaxCPUsPerNode=2"])
    try:
        now = backend.queue_state()
        assert (now.allowed.max_tr, now.allowed.max_proc, now.processors) == (300, 8, 8)
        assert {node.processors for node in now.nodes} == {2}
    finally:
        slurm.run([*partition, "MaxTime=4:00:00", "MaxCPUsPerNode=UNLIMITED"])
