"""Faults of the scheduler and its nodes, and what operators do to them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import psutil

from tests.campaign.faults.catalog import NoVictimError, choose, claim, fault, present
from tests.campaign.faults.processes import frozen
from tests.campaign.world import World, variable
from tests.clusters.processes import step_processes
from tests.clusters.slurm import ThrowawaySlurm


@fault("slurmctld: kill -9", lasts=(2, 20))
def controller_killed(world: World, draw: float) -> Iterator[str]:
    name, cluster = choose(world.sites, draw)
    with claim(world, f"controller {name}"):
        cluster.stop_controller(kill=True)
        yield name
        cluster.start_controller()


@fault("slurmctld: away", lasts=(5, 30))
def controller_away(world: World, draw: float) -> Iterator[str]:
    name, cluster = choose(world.sites, draw)
    with claim(world, f"controller {name}"):
        cluster.stop_controller()
        yield name
        cluster.start_controller()


@fault("slurmctld: frozen", lasts=(2, 15))
def controller_frozen(world: World, draw: float) -> Iterator[str]:
    name, cluster = choose(world.sites, draw)
    with claim(world, f"controller {name}"), frozen(present(cluster.daemon("slurmctld"))):
        yield name


@fault("slurmd: kill -9", lasts=(1, 15))
def node_daemon_killed(world: World, draw: float) -> Iterator[str]:
    """Its job steps live on."""
    name, cluster, node = choose(_nodes(world), draw)
    with claim(world, f"node {name} {node}"):
        cluster.kill_node_daemon(node)
        yield f"{name} {node}"
        cluster.start_node(node)


@fault("slurmd: frozen", lasts=(2, 15))
def node_daemon_frozen(world: World, draw: float) -> Iterator[str]:
    name, cluster, node = choose(_nodes(world), draw)
    with claim(world, f"node {name} {node}"), frozen(present(cluster.daemon(f"slurmd.{node}"))):
        yield f"{name} {node}"


@fault("node: power cut", lasts=(2, 20))
def node_powered_off(world: World, draw: float) -> Iterator[str]:
    name, cluster, node = choose(_nodes(world), draw)
    with claim(world, f"node {name} {node}"):
        cluster.stop_node(node)
        yield f"{name} {node}"
        cluster.start_node(node)


@fault("slurmstepd: kill -9", weight=2)
def step_daemon_killed(world: World, draw: float) -> Iterator[str]:
    homes = [cluster.home(f"slurmd.{node}") for _, cluster, node in _nodes(world)]
    steps = [step for step in step_processes(homes) if _of_a_pilot(step)]
    step = choose(sorted(steps, key=lambda process: process.pid), draw)
    step.kill()
    yield f"pid {step.pid}"


@fault("srun: kill -9")
def launcher_killed(world: World, draw: float) -> Iterator[str]:
    launcher = choose(world.launchers(), draw)
    launcher.kill()
    yield f"pid {launcher.pid}"


@fault("node: drained", lasts=(5, 25))
def node_drained(world: World, draw: float) -> Iterator[str]:
    name, cluster, node = choose(_nodes(world), draw)
    with claim(world, f"node {name} {node}"):
        _answering(world, name)
        world.operate(cluster, "scontrol", "update", f"nodename={node}", "state=drain", "reason=campaign")
        yield f"{name} {node}"
        world.chores.append(partial(_resume, world, cluster, node))


@fault("operator: scancel of a pilot", weight=2)
def pilot_cancelled(world: World, draw: float) -> Iterator[str]:
    name, cluster = choose(world.sites, draw)
    _answering(world, name)
    lines = world.operate(cluster, "squeue", "-h", "-o", "%i %j").splitlines()
    job = choose([line.split()[0] for line in lines if line.split()[1].startswith("adaptor-")], draw)
    world.operate(cluster, "scancel", job)
    yield f"{name} job {job}"


@fault("site: stopped", scenes=("two-sites",), lasts=(10, 40))
def site_stopped(world: World, draw: float) -> Iterator[str]:
    """The whole second cluster loses its power."""
    name, cluster = world.sites[-1]
    nodes = cluster.options.node_names
    with claim(world, f"controller {name}", *(f"node {name} {node}" for node in nodes)):
        cluster.stop_controller(kill=True)
        for node in nodes:
            cluster.stop_node(node)
        yield name
        for node in nodes:
            cluster.start_node(node)
        cluster.start_controller()


def _nodes(world: World) -> list[tuple[str, ThrowawaySlurm, str]]:
    return [(name, cluster, node) for name, cluster in world.sites for node in cluster.options.node_names]


def _resume(world: World, cluster: ThrowawaySlurm, node: str) -> None:
    """Raises ClusterError: Slurm does not answer. A node that was lost meanwhile may be back in service."""
    if "drain" in world.operate(cluster, "sinfo", "-h", "-n", node, "-o", "%T"):
        world.operate(cluster, "scontrol", "update", f"nodename={node}", "state=resume")


def _of_a_pilot(step: psutil.Process) -> bool:
    return any(variable(child, "SLURM_JOB_NAME").startswith("adaptor-") for child in step.children())


def _answering(world: World, name: str) -> None:
    """Raises NoVictimError: the controller of this cluster is hit already, so nobody can operate it."""
    if f"controller {name}" in world.claimed:
        raise NoVictimError
