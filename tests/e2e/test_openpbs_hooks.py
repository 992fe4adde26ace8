"""Bags on an OpenPBS whose hooks see each program that a job starts: all nodes work, on what is theirs.

Every throwaway OpenPBS has a hook for execjob_launch; here others are added, pbs_cgroups among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.openpbs import ThrowawayOpenPbs, unavailable
from tests.clusters.openpbs_conf import ClusterOptions
from tests.e2e.lab import Lab, exactly_one_result_each, site

pytestmark = pytest.mark.pbs

DEVICES = r"""
import re
import pbs

event, node = pbs.event(), pbs.get_local_nodename()
chunks = re.findall(r"\(([^)]*)\)", str(event.job.exec_vnode))
mine = [part for chunk in chunks for part in chunk.split("+") if re.split(r"[\[:]", part)[0] == node]
count = sum(int(number) for part in mine for number in re.findall(r"ngpus=(\d+)", part))
event.env["CUDA_VISIBLE_DEVICES"] = "\\,".join("GPU-%s-%d" % (node, number) for number in range(count))
event.env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
event.accept()
"""
"""Names the devices of the job on each node in the way of pbs_cgroups, which would need real ones."""


def configure(lab: Lab, processors: int) -> None:
    lab.configure(site("pbs", (1, processors, "20m"), initial_tr="5m", idle_timeout=10, command_timeout=10))


def at_once(lab: Lab, count: int, place: str = "$(hostname)") -> str:
    """A command that ends once it has begun in so many different places.

    Each place keeps what /proc/self/cgroup says there. Where a task begins is asked of `begun`, not of its
    result: a copy of it on an idle slot of another node may be the first to end.
    """
    folder = lab.work / "begun"
    folder.mkdir(exist_ok=True)
    return (
        f"cat /proc/self/cgroup > {folder}/{place};"
        f" until [ $(ls {folder} | wc -l) -ge {count} ]; do sleep 0.2; done"
    )


def begun(lab: Lab) -> dict[str, str]:
    """The control groups of each place in which a task began."""
    return {place.name: place.read_text() for place in (lab.work / "begun").iterdir()}


def said(lab: Lab, bag: int, tasks: int) -> list[list[str]]:
    """The words that each task has printed, once all are done."""
    lab.wait(bag)
    exactly_one_result_each(lab, bag, tasks)
    return [Path(task["stdout"]).read_text().split() for task in lab.results(bag)]


def test_the_workers_of_a_pilot_start_on_all_its_nodes(openpbs: ThrowawayOpenPbs, lab: Lab) -> None:
    configure(lab, 16)
    lab.bag([at_once(lab, 4)] * 64)
    bag = lab.submit("tasks.bag")
    lab.wait(bag)
    exactly_one_result_each(lab, bag, 64)
    assert begun(lab).keys() == set(openpbs.nodes)


def test_each_task_has_a_gpu_of_its_node_alone(openpbs: ThrowawayOpenPbs, lab: Lab) -> None:
    """12 tasks on 8 GPUs: the first 8 run at the same time, and end only if none has the GPU of another."""
    configure(lab, 8)
    lab.bag([f"{at_once(lab, 8, '$CUDA_VISIBLE_DEVICES')}; hostname; echo $CUDA_VISIBLE_DEVICES"] * 12)
    with openpbs.hook("devices", DEVICES):
        found = said(lab, lab.submit("tasks.bag", "--gpus", "1"), 12)
    assert all(device in (f"GPU-{node}-0", f"GPU-{node}-1") for node, device in found)
    assert begun(lab).keys() == {f"GPU-{node}-{number}" for node in openpbs.nodes for number in range(2)}


@pytest.fixture
def confined(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrowawayOpenPbs]:
    """A cluster of two processors on each node with pbs_cgroups."""
    if reason := unavailable():
        pytest.skip(reason)
    nodes, controllers = request.param
    with ThrowawayOpenPbs(ClusterOptions(nodes=nodes, cpus=2, cgroups=controllers)) as cluster:
        for name, value in cluster.env.items():
            monkeypatch.setenv(name, value)
        yield cluster


@pytest.mark.parametrize("confined", [(2, ("cpuacct",))], indirect=True, ids=["two nodes"])
@pytest.mark.nightly  # a cluster of its own
def test_pbs_cgroups_starts_the_workers_of_all_nodes(confined: ThrowawayOpenPbs, lab: Lab) -> None:
    configure(lab, 4)
    lab.bag([at_once(lab, 2)] * 16)
    lab.wait(lab.submit("tasks.bag"))
    assert begun(lab).keys() == set(confined.nodes)
    assert all(f"cpuacct:/{confined.network.head}." in groups for groups in begun(lab).values())


@pytest.mark.nightly
@pytest.mark.parametrize("confined", [(1, ("cpuset", "cpuacct", "memory"))], indirect=True, ids=["one node"])
def test_pbs_cgroups_gives_what_is_asked_for(confined: ThrowawayOpenPbs, lab: Lab) -> None:
    """All chunks of a node together; memory for which nobody asks is 256 MB as OpenPBS ships the hook."""
    configure(lab, 2)
    task = "p=/proc/self; grep Cpus_allowed_list $p/status; m=$(sed -n 's/.*:memory://p' $p/cgroup)"
    lab.bag([f"{task}; cat /sys/fs/cgroup/memory/$m/memory.limit_in_bytes; sleep 1"] * 4)
    for options, limit in ((("--mem", "200M"), 400 * 2**20), ((), 256 * 2**20)):
        found = said(lab, lab.submit("tasks.bag", *options), 4)
        assert {int(words[2]) for words in found} == {limit}
        assert {words[1] for words in found} == {"0", "1"}, "each task is bound to a processor"
