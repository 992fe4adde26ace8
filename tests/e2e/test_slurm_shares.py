"""What tasks get where Slurm binds steps, and what is said where a step gets less than its job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.narrow_srun import narrow_srun
from tests.clusters.slurm import ThrowawaySlurm, available
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab, exactly_one_result_each, until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

SITE = """
    sites:
      hpc:
        backend: slurm
        partition: batch
        limits: {{max_pending_requests: 1, max_proc: 4, max_tr: 20m}}
        initial_tr: 2m
        idle_timeout: 3
        poll_interval: 2
        prologue: {prologue}
"""
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


@pytest.fixture
def cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrowawaySlurm]:
    reason = available()
    if reason:
        pytest.skip(reason)
    options = getattr(request, "param", BOUND)
    with ThrowawaySlurm(options) as made:
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        yield made


def seen(lab: Lab, bag: int) -> dict[str, set[str]]:
    """By node: the processors to which its tasks were bound."""
    exactly_one_result_each(lab, bag, 12)
    found = defaultdict(set)
    for task in lab.results(bag):
        found[task["node"]].add(Path(task["stdout"]).read_text().strip())
    return found


def test_tasks_have_all_processors_of_their_pilot_each_its_own(cluster: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE.format(prologue="''"))
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
    "cluster", [ClusterOptions(nodes=2, cpus=6, select="CR_CPU_Memory")], indirect=True, ids=["6 processors"]
)
def test_the_step_of_tasks_of_several_processors_has_all_of_its_node(
    cluster: ThrowawaySlurm, lab: Lab
) -> None:
    lab.configure(SITE.format(prologue="''").replace("max_proc: 4", "max_proc: 12"))
    lab.bag([STEP_HAS] * 12)
    bag = lab.submit("tasks.bag", "--cpus", "3", "--mem", "100M", "--time", "10s")
    lab.wait(bag)
    assert set.union(*seen(lab, bag).values()) == {"6"}
    assert "gave" not in lab.run("why").stdout


def test_a_step_that_gets_less_than_was_asked_for_is_used_as_far_as_it_goes_and_named(
    cluster: ThrowawaySlurm, lab: Lab
) -> None:
    lab.configure(SITE.format(prologue=f'"{narrow_srun(lab.root / "bin")}"'))
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
