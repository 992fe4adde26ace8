"""On a real OpenPBS: what its nodes say is held is what the state of the queue tells, and requests fit."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from adaptor.config.schema import SiteConfig
from adaptor.model import QueueState
from adaptor.reports import JobState
from adaptor.resources import Need, Part, TaskSize
from backends.base import SchedulerError, SubmitRefused
from backends.pbs.backend import PbsBackend
from backends.pbs.fields import parse_long
from backends.pbs.openpbs.hardware import nodes_of
from tests.backends.orders import own, runnable
from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.living import until

pytestmark = pytest.mark.pbs

GB = 2**30
GPUS = (("a100", 2),)


class Site:
    """The backend, other users' jobs beside it, and what pbsnodes says."""

    def __init__(self, cluster: ThrowawayOpenPbs, folder: Path) -> None:
        self.cluster = cluster
        self.backend = PbsBackend(SiteConfig(backend="pbs"))
        self.folder = folder

    def other(self, select: str, place: str = "free", walltime: int = 600) -> str:
        options = ["-l", f"select={select}", "-l", f"place={place}", "-l", f"walltime={walltime}"]
        command = ["qsub", *options, "-j", "oe", "-o", "/dev/null", "--", "/bin/sleep", "600"]
        return self.cluster.run(command).strip()

    def submit(self, tag: str, p: int, task: TaskSize, worker: str = "sleep 600") -> str:
        return self.backend.submit(runnable(self.folder, tag, worker, p, 300, task))

    def reaches(self, id: str, state: JobState) -> None:
        until(lambda: [job.state for job in self.backend.jobs([id], "none")] == [state], f"{id} is {state}")

    def gives_back(self, id: str, node: str) -> None:
        """PBS takes no node of a job in its first seconds."""

        def done() -> bool:
            try:
                self.backend.release(*own(self.backend, id), [node])
            except SchedulerError as error:
                if "Request invalid for state of job" not in str(error):
                    raise
                return False
            return True

        until(done, f"{node} is given back")

    def runs(self, *ids: str) -> None:
        until(lambda: set(ids) <= {job.id for job in self.backend.queue_state().running}, f"{ids} run")

    def assigned(self) -> Counter[tuple[str, str]]:
        """By machine and resource, as pbsnodes counts it."""
        found = Counter[tuple[str, str]]()
        for node in nodes_of(parse_long(self.cluster.run(["pbsnodes", "-a", "-v"]), "")):
            held = node.has if "job-exclusive" in node.states else node.assigned
            found.update({(node.host, "processors"): held.processors, (node.host, "memory"): held.memory})
            found.update({(node.host, "gpus"): sum(count for _, count in held.gpus)})
        return +found


def told(state: QueueState) -> Counter[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for part in (part for job in state.running for part in job.parts):
        found.update({(part.node, "processors"): part.processors, (part.node, "memory"): part.memory})
        found.update({(part.node, "gpus"): sum(count for _, count in part.gpus)})
    return +found


@pytest.fixture
def site(openpbs: ThrowawayOpenPbs, tmp_path: Path) -> Site:
    return Site(openpbs, tmp_path)


def test_nodes_are_given_back_while_the_others_work(site: Site) -> None:
    """The worker leaves first, as it does when it has no task."""
    first = site.cluster.nodes[0]
    stay = f'if [ "$ADAPTOR_NODE" = {first} ]; then echo up >"$ADAPTOR_DIRECTORY/up"; sleep 600; fi'
    id = site.submit("shrinking", 12, TaskSize(), stay)
    until(lambda: (site.folder / "shrinking" / "up").exists(), "the worker of the first node")
    (report,) = site.backend.jobs([id], "none")
    kept, *others = report.nodes
    assert (kept, len(others)) == (first, 2)
    until(lambda: len(list((site.folder / "shrinking").glob("left-*"))) == 2, "the others leave")
    assert site.backend.can_release
    site.gives_back(id, others[0])
    site.gives_back(id, others[1])
    until(lambda: set(site.assigned()) == {(first, "processors")}, "their processors are free")
    (report,) = site.backend.jobs([id], "none")
    assert (report.state, report.nodes) == (JobState.RUNNING, (first,))
    with pytest.raises(SchedulerError, match="primary execution host"):
        site.backend.release(*own(site.backend, id), [first])
    site.backend.cancel(own(site.backend, id))


def test_a_node_that_is_taken_from_its_worker_holds_up_no_pilot(site: Site) -> None:
    """PBS kills what runs there, and the pbsdsh of the pilot does not hear of it."""
    first, second, *_ = site.cluster.nodes
    go = f'[ "$ADAPTOR_NODE" = {first} ] || sleep 600; until [ -e "$ADAPTOR_DIRECTORY/go" ]; do sleep 1; done'
    id = site.submit("taken", 8, TaskSize(), f'echo up >"$ADAPTOR_DIRECTORY/up-$ADAPTOR_NODE"; {go}')
    until(lambda: len(list((site.folder / "taken").glob("up-*"))) == 2, "both workers")
    site.gives_back(id, second)
    (site.folder / "taken" / "go").touch()
    site.reaches(id, JobState.COMPLETED)


def test_parts_are_what_pbsnodes_says_is_held(site: Site) -> None:
    one, two, split, four = site.cluster.nodes
    memory = site.other(f"1:ncpus=1:mem=3gb:host={one}")
    gpu = site.other(f"1:ncpus=1:ngpus=1:gpu_type=a100:host={one}")
    alone = site.other(f"1:ncpus=1:host={two}", place="excl")
    wide = site.other(f"1:ncpus=3:ngpus=1:mem=1gb:host={split}")
    uneven = site.other(f"1:ncpus=1:mem=1gb:host={four}+2:ncpus=1:ngpus=1:host={four}")
    site.runs(memory, gpu, alone, wide, uneven)
    state = site.backend.queue_state()
    assert told(state) == site.assigned()
    assert {job.id: job.parts for job in state.running} == {
        memory: (Part(node=one, processors=1, memory=3 * GB),),
        gpu: (Part(node=one, processors=1, gpus=(("a100", 1),)),),
        alone: (Part(node=two, processors=4, memory=4 * GB, gpus=GPUS),),
        wide: (Part(node=split, processors=3, memory=GB, gpus=(("a100", 1),)),),
        uneven: (Part(node=four, processors=3, memory=GB, gpus=GPUS),),
    }
    assert all((node.processors, node.memory, node.gpus) == (4, 4 * GB, GPUS) for node in state.nodes)


def test_a_job_that_has_a_machine_of_several_vnodes_holds_all_of_it(site: Site) -> None:
    split = site.cluster.nodes[2]
    id = site.other(f"1:ncpus=1:host={split}", place="exclhost")
    site.runs(id)
    state = site.backend.queue_state()
    assert [job.parts for job in state.running] == [
        (Part(node=split, processors=4, memory=4 * GB, gpus=GPUS),)
    ]
    assert told(state) == site.assigned()


def test_tasks_of_three_processors_fit_four_times_on_four_nodes_of_four(site: Site) -> None:
    """`select=5:ncpus=3` waits for ever on 16 idle processors."""
    task = TaskSize(processors=3, memory=GB)
    with pytest.raises(SubmitRefused, match=r"together hold 4: lower `limits.max_proc` of this site to 12"):
        site.submit("five", 15, task)
    with pytest.raises(SubmitRefused, match="no node of queue workq has 1 processor and 3 GPUs"):
        site.submit("gpus", 1, TaskSize(gpus=3))
    with pytest.raises(SubmitRefused, match="no node of queue workq has 1 processor and 1 v100 GPU"):
        site.submit("type", 1, TaskSize(gpus=1, gpu_type="v100"))
    id = site.submit("four", 12, task)
    site.reaches(id, JobState.RUNNING)
    (job,) = site.backend.queue_state().running
    assert sorted(job.parts, key=lambda part: part.node) == [
        Part(node=node, processors=3, memory=GB) for node in site.cluster.nodes
    ]


def test_each_worker_learns_what_it_has_on_its_node(site: Site) -> None:
    """Half a GPU per task: two tasks are one chunk."""
    say = 'env > "$ADAPTOR_DIRECTORY/env-$ADAPTOR_NODE"'
    task = TaskSize(gpus=0.5, gpu_type="a100", memory=GB // 2)
    id = site.submit("half", 10, task, say)
    site.reaches(id, JobState.COMPLETED)
    seen = [
        dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
        for file in site.folder.glob("half/env-*")
    ]
    shares = sorted(
        (int(each["ADAPTOR_PROCESSORS"]), int(each["ADAPTOR_MEMORY"]), int(each["ADAPTOR_GPUS"]))
        for each in seen
    )
    assert shares == [(2, GB, 1), (4, 2 * GB, 2), (4, 2 * GB, 2)]


def test_a_task_of_two_nodes_has_them_whole(site: Site) -> None:
    id = site.submit("wide", 8, TaskSize(nodes=2))
    site.reaches(id, JobState.RUNNING)
    (job,) = site.backend.queue_state().running
    assert [(part.processors, part.memory, part.gpus) for part in job.parts] == 2 * [(4, 4 * GB, GPUS)]


def test_a_planned_job_keeps_its_part_and_leaves_the_rest_of_the_node(site: Site) -> None:
    """PBS starts a job beside the planned one that outlasts its start, but not beside an exclusive one."""
    one, two, *_ = site.cluster.nodes
    with site.cluster.plans():
        busy = [site.other(f"1:ncpus=2:host={node}", walltime=300) for node in (one, two)]
        site.runs(*busy)
        shared = site.other(f"1:ncpus=3:ngpus=1:host={one}")
        alone = site.other(f"1:ncpus=2:host={two}", place="excl")

        def planned() -> dict[str, tuple[Part, ...]]:
            pending = site.backend.queue_state().pending
            return {job.id: job.parts for job in pending if job.planned_start is not None}

        until(lambda: {shared, alone} <= planned().keys(), "both are planned")
        assert planned() == {
            shared: (Part(node=one, processors=3, gpus=(("a100", 1),)),),
            alone: (Part(node=two, processors=4, memory=4 * GB, gpus=GPUS),),
        }
        needs = {job.id: job.need for job in site.backend.queue_state().pending}
        assert needs[shared] == Need(chunks=1, processors=3, gpus=1, nodes=frozenset({one}))
        beside = [site.other(f"1:ncpus=1:host={node}", walltime=3000) for node in (one, two)]
        site.runs(beside[0])
        until(lambda: beside[1] in planned(), "the other waits for the exclusive job")


def test_a_reservation_keeps_what_it_reserves(site: Site) -> None:
    def reserved(seconds: int) -> str:
        """From so many seconds from now."""
        start = time.strftime("%Y%m%d%H%M.%S", time.localtime(time.time() + seconds))
        options = ["-R", start, "-D", "600", "-l", "select=1:ncpus=2:mem=1gb:ngpus=1"]
        return site.cluster.run(["pbs_rsub", *options]).split()[0]

    def held(id: str) -> tuple[list[str], list[tuple[Part, ...]]]:
        state = site.backend.queue_state()
        found = [job for job in (*state.running, *state.pending) if job.id == f"reservation {id}"]
        return [type(job).__name__ for job in found], [job.parts for job in found]

    later, id = reserved(3600), reserved(10)
    for each, kind in ((later, "PendingJob"), (id, "RunningJob")):
        until(lambda each=each, kind=kind: held(each)[0] == [kind], f"{each} is a {kind}")
        ((part,),) = held(each)[1]
        assert (part.processors, part.memory, part.gpus) == (2, GB, (("a100", 1),))
    until(lambda: told(site.backend.queue_state()) == site.assigned(), "its part is what pbsnodes counts")
    inside = ["-q", id.partition(".")[0], "-l", "select=1:ncpus=1:mem=512mb", "-j", "oe", "-o", "/dev/null"]
    site.runs(site.cluster.run(["qsub", *inside, "--", "/bin/sleep", "600"]).strip())
    assert told(site.backend.queue_state()) == site.assigned()
    ((rest,),) = held(id)[1]
    assert (rest.processors, rest.memory, rest.gpus) == (1, GB // 2, (("a100", 1),))


def test_a_request_that_is_altered_by_hand_is_told_as_pbs_has_it(site: Site) -> None:
    all_nodes = site.other("4:ncpus=4", place="scatter:excl")
    site.runs(all_nodes)
    id = site.submit("altered", 4, TaskSize())
    assert [(job.processors, job.limit) for job in site.backend.jobs([id], "none")] == [(4, 300)]
    site.cluster.run(["qalter", "-l", "select=2:ncpus=1:mpiprocs=1", "-l", "walltime=120", id])
    assert [(job.processors, job.limit) for job in site.backend.jobs([id], "none")] == [(2, 120)]
    site.backend.cancel(own(site.backend, all_nodes))
    site.reaches(id, JobState.RUNNING)
    (job,) = site.backend.jobs([id], "none")
    assert (job.processors, job.granted) == (2, 120)
