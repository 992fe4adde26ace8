"""What tasks and calls get of their nodes, and what is said where a step gets less than its job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.clusters.narrow_srun import narrow_srun
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.e2e.test_local_executor import said
from tests.living import until

pytestmark = pytest.mark.slurm


BOUND_TO = "taskset -pc $$ | sed 's/.*: //'"
STEP_HAS = "tr '\\0' '\\n' < /proc/$PPID/environ | sed -n 's/^SLURM_CPUS_ON_NODE=//p'"


BOUND = ClusterOptions(
    nodes=2,
    cpus=2,
    select="CR_CPU_Memory",
    task_plugin="task/affinity",
    extra=("TaskPluginParam=autobind=threads",),
)
"""Two nodes of two processors, both those of this machine."""
bound = pytest.mark.parametrize("own_slurm", [BOUND], indirect=True, ids=["bound"])


def configure(lab: Lab, processors: int = 4, **keys: str) -> None:
    lab.configure(site("slurm", (1, processors, "20m"), initial_tr="2m", idle_timeout=3, **keys))


def seen(lab: Lab, bag: int) -> dict[str, set[str]]:
    """By node: the processors to which its tasks were bound."""
    exactly_one_result_each(lab, bag, 12)
    found = defaultdict(set)
    for task in lab.results(bag):
        found[task["node"]].add(Path(task["stdout"]).read_text().strip())
    return found


@bound
def test_tasks_have_all_processors_of_their_pilot_each_its_own(own_slurm: ThrowawaySlurm, lab: Lab) -> None:
    configure(lab)
    lab.bag([BOUND_TO] * 12)
    single = lab.submit("tasks.bag", "--mem", "100M", "--time", "10s")
    lab.wait(single)
    assert all(bound <= {"0", "1"} for bound in seen(lab, single).values())
    assert set.union(*seen(lab, single).values()) == {"0", "1"}
    double = lab.submit("tasks.bag", "--cpus", "2", "--time", "10s")
    lab.wait(double)
    assert all(bound == {"0,1"} for bound in seen(lab, double).values())
    assert "gave" not in lab.run("why").stdout


@pytest.mark.parametrize(
    "own_slurm",
    [ClusterOptions(nodes=2, cpus=6, select="CR_CPU_Memory")],
    indirect=True,
    ids=["6 processors"],
)
@pytest.mark.nightly  # a cluster of its own
def test_the_step_of_tasks_of_several_processors_has_all_of_its_node(
    own_slurm: ThrowawaySlurm, lab: Lab
) -> None:
    configure(lab, processors=12)
    lab.bag([STEP_HAS] * 12)
    bag = lab.submit("tasks.bag", "--cpus", "3", "--mem", "100M", "--time", "10s")
    lab.wait(bag)
    assert set.union(*seen(lab, bag).values()) == {"6"}
    assert "gave" not in lab.run("why").stdout


@bound
@pytest.mark.nightly  # a cluster of its own
def test_a_step_that_gets_less_than_was_asked_for_is_used_as_far_as_it_goes_and_named(
    own_slurm: ThrowawaySlurm, lab: Lab
) -> None:
    configure(lab, prologue=narrow_srun(lab.root / "bin"))
    lab.bag([lab.hold()] * 12)
    bag = lab.submit("tasks.bag", "--mem", "100M", "--time", "10s")
    until(lambda: "gave" in lab.run("why").stdout, "the daemon says what a node gave")
    (pilot,) = lab.pilots()
    assert "gave 1 of 2 processors (affinity): tasks use only these" in pilot["note"]
    nodes = until(
        lambda: [line for line in lab.run("why").stdout.splitlines() if " gave " in line][1:], "both nodes"
    )
    assert len(nodes) == 1, "each of the two is named once"
    assert lab.status(bag)["running"] == 2
    (log,) = (lab.state / "pilots" / str(pilot["id"])).glob("worker-n1.log")
    assert "n1 gave 1 of 2 processors (affinity): tasks use only these" in log.read_text()
    lab.release()
    lab.wait(bag)
    exactly_one_result_each(lab, bag, 12)


SITE = site("slurm", (3, 8, "20m"), initial_tr="1m", idle_timeout=3)
GPUS = ClusterOptions(
    nodes=2,
    node_settings=dict.fromkeys(("n1", "n2"), "Gres=gpu:a100:2"),
    gres=("Name=gpu Type=a100 File=/dev/tty[1-2]",),
    extra=("GresTypes=gpu",),
)
with_gpus = pytest.mark.parametrize("own_slurm", [GPUS], indirect=True, ids=["gpus"])
TASK = "echo $SLURM_JOB_ID $CUDA_VISIBLE_DEVICES $ADAPTOR_GPUS; date +%s.%N; sleep 1; date +%s.%N"


@with_gpus
def test_tasks_of_one_gpu_are_on_all_that_their_pilot_has(own_slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag([TASK] * 12)
    lab.wait(lab.submit("tasks.bag", "--gpus", "a100:1"))
    seen: dict[str, set[str]] = defaultdict(set)
    for task in lab.results():
        seen[task["node"]].add(Path(task["stdout"]).read_text().split()[1])
    assert set(map(len, seen.values())) == {2}


@with_gpus
@pytest.mark.nightly  # a cluster of its own
def test_no_gpu_is_held_by_more_tasks_than_may_share_it(own_slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag([TASK] * 12)
    whole = lab.submit("tasks.bag", "--gpus", "a100:1")
    halves = lab.submit("tasks.bag", "--gpus", "0.5")
    both = lab.submit("tasks.bag", "--gpus", "2")
    plain = lab.submit("tasks.bag")
    held: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for bag, count, share in ((whole, 1, 1.0), (halves, 1, 0.5), (both, 2, 1.0), (plain, 0, 1.0)):
        lab.wait(bag)
        exactly_one_result_each(lab, bag, 12)
        for task in lab.results(bag):
            words, begun, ended = Path(task["stdout"]).read_text().splitlines()
            gpus = words.split()[1].split(",") if count else []
            assert len(gpus) == count
            assert len(words.split()) == 1 + 2 * bool(count), "as ADAPTOR_GPUS says, or none at all"
            for gpu in gpus:
                held[task["node"], gpu].append((float(begun), float(ended), share))
    assert {gpu for _, gpu in held} == {"0", "1"}
    for spans in held.values():
        assert most_at_once(spans) <= 1.0
    lab.run("submit", "tasks.bag", "--gpus", "3", expect=2)
    lab.run("submit", "tasks.bag", "--gpus", "h100:1", expect=2)


def most_at_once(spans: Iterable[tuple[float, float, float]]) -> float:
    """The largest sum of shares at any instant."""
    changes = sorted(change for begun, ended, share in spans for change in ((begun, share), (ended, -share)))
    held = most = 0.0
    for _, change in changes:
        held += change
        most = max(most, held)
    return most


MIXED_SITE = site("slurm", (3, 16, "20m"), idle_timeout=3)


def test_each_call_is_in_a_job_that_holds_what_it_needs(mixed_slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(MIXED_SITE)
    out = said(
        lab.program("""
            import adaptor

            def found():
                import os, re, subprocess
                with open(f"/proc/{os.getppid()}/environ") as worker:  # its job is the pilot's
                    pilot = re.search(r"SLURM_JOB_ID=(\\d+)", worker.read())[1]
                job = ["scontrol", "show", "job", pilot]
                told = subprocess.run(job, capture_output=True, text=True, check=True).stdout
                allocated = re.search(r"\\s(?:Alloc)?TRES=(\\S+)", told)[1]  # AllocTRES: Slurm 24
                gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "none")
                return os.environ["ADAPTOR_CPUS"], gpus, os.environ.get("WORD"), allocated

            if __name__ == "__main__":
                with adaptor.Executor(time="1m") as executor:
                    print(*executor.submit(found).result())
                    wide = executor.with_resources(cpus=8, mem="2G", env={"WORD": "wide"})
                    print(*wide.submit(found).result())
                    print(*wide.submit(found, adaptor_resources={"cpus": 1, "gpus": 1}).result())
                    print(wide.submit(found, adaptor_resources={"gpus": 100}).exception())
        """)
    )
    usual, wide, with_gpu, refused = out.splitlines()
    assert usual.startswith("1 none None cpu=")
    assert wide.startswith("8 none wide cpu=")
    allocated = dict(each.split("=", 1) for each in wide.split()[3].split(","))
    assert int(allocated["cpu"]) >= 8
    assert allocated["mem"] in ("2G", "2063M")
    cpus, gpu, word, _ = with_gpu.split()
    assert (cpus, gpu.isdecimal(), word) == ("1", True, "wide")
    assert "the call has no result: no node can run it: hpc: each needs 100 GPUs" in refused
