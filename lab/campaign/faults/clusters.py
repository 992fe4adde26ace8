"""Faults of the scheduler and its nodes, and what operators do to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from lab.campaign.faults.catalog import ON_OPENPBS, ON_SLURM, NoVictimError, choose, claim, fault, present
from lab.campaign.faults.processes import frozen
from lab.campaign.schedulers.cluster import Cluster
from lab.campaign.world import World

FORGETFUL = ("plain", "spool", "few-requests", "budget", "quota", "openpbs")
"""Scenes whose records are the controller's."""
UNSAVED = 6.0
"""Seconds of which slurmctld may know nothing after SIGKILL."""
ASKED_HERE = (*FORGETFUL[:-1], "limits", "accounting")
"""Scenes of Slurm whose commands run on this machine."""


@fault("controller: kill -9", lasts=(2, 20))
def controller_killed(world: World, draw: float) -> Iterator[str]:
    cluster = choose(world.sites, draw)
    with claim(world, f"controller {cluster.name}"):
        cluster.stop_controller(kill=True)
        _unsaved(world)
        yield cluster.name
        cluster.start_controller()


@fault("controller: away", lasts=(5, 30))
def controller_away(world: World, draw: float) -> Iterator[str]:
    cluster = choose(world.sites, draw)
    with claim(world, f"controller {cluster.name}"):
        cluster.stop_controller()
        yield cluster.name
        cluster.start_controller()


@fault("controller: frozen", lasts=(2, 15))
def controller_frozen(world: World, draw: float) -> Iterator[str]:
    cluster = choose(world.sites, draw)
    with claim(world, f"controller {cluster.name}"), frozen(present(cluster.controller())):
        yield cluster.name


@fault("controller: restored from a backup", scenes=FORGETFUL, lasts=(5, 25))
def controller_restored(world: World, draw: float) -> Iterator[str]:
    """Jobs of the user's own get the numbers of the pilots since."""
    cluster = choose(world.sites, draw)
    with claim(world, f"controller {cluster.name}"):
        since = time.time()
        cluster.back_up()
        yield cluster.name
        cluster.restore()
        world.rewound.append((since, time.time()))


@fault("scheduler: wrong answers", weight=3, scenes=ASKED_HERE, lasts=(3, 20))
def answers_wrong(world: World, draw: float) -> Iterator[str]:
    cluster = world.sites[0]
    with claim(world, f"answers {cluster.name}"):
        command, answer = cluster.answer_wrongly(draw)
        yield f"{cluster.name} {command}: {answer}"
        cluster.answer_rightly(command)


@fault("account: limited", weight=4, scenes=("limits",), lasts=(5, 30))
def account_limited(world: World, draw: float) -> Iterator[str]:
    cluster = world.sites[0]
    with claim(world, f"account {cluster.name}"):
        _answering(world, cluster)
        of, limit = cluster.limit_account(draw)
        yield f"{cluster.name} {of}: {limit}"
        world.chores.append(partial(cluster.lift_limit, of, limit))


@fault("node daemon: kill -9", lasts=(1, 15))
def node_daemon_killed(world: World, draw: float) -> Iterator[str]:
    """Its job steps live on."""
    cluster, node = choose(_nodes(world), draw)
    with claim(world, f"node {cluster.name} {node}"):
        cluster.kill_node_daemon(node)
        yield f"{cluster.name} {node}"
        cluster.start_node(node)


@fault("node daemon: frozen", lasts=(2, 15))
def node_daemon_frozen(world: World, draw: float) -> Iterator[str]:
    cluster, node = choose(_nodes(world), draw)
    with claim(world, f"node {cluster.name} {node}"), frozen(present(cluster.node_daemon(node))):
        yield f"{cluster.name} {node}"


@fault("node: power cut", lasts=(2, 20))
def node_powered_off(world: World, draw: float) -> Iterator[str]:
    cluster, node = choose(_nodes(world), draw)
    with claim(world, f"node {cluster.name} {node}"):
        cluster.stop_node(node)
        yield f"{cluster.name} {node}"
        cluster.start_node(node)


@fault("step daemon: kill -9", weight=2, scenes=ON_SLURM)
def step_daemon_killed(world: World, draw: float) -> Iterator[str]:
    steps = [step for cluster in world.sites for step in cluster.steps()]
    step = choose(sorted(steps, key=lambda process: process.pid), draw)
    step.kill()
    yield f"pid {step.pid}"


@fault("srun: kill -9", scenes=ON_SLURM)
def launcher_killed(world: World, draw: float) -> Iterator[str]:
    launcher = choose(world.launchers(), draw)
    launcher.kill()
    yield f"pid {launcher.pid}"


@fault("node: drained", lasts=(5, 25))
def node_drained(world: World, draw: float) -> Iterator[str]:
    cluster, node = choose(_nodes(world), draw)
    with claim(world, f"node {cluster.name} {node}"):
        _answering(world, cluster)
        cluster.drain(node)
        yield f"{cluster.name} {node}"
        world.chores.append(partial(cluster.resume, node))


@fault("operator: cancels a pilot", weight=2)
def pilot_cancelled(world: World, draw: float) -> Iterator[str]:
    cluster = choose(world.sites, draw)
    _answering(world, cluster)
    job = choose([job.id for job in cluster.queue()], draw)
    cluster.cancel(job)
    yield f"{cluster.name} job {job}"


@fault("accounting: kill -9", scenes=("accounting",), lasts=(2, 30))
def accounting_killed(world: World, draw: float) -> Iterator[str]:
    cluster = choose(world.sites, draw)
    with claim(world, f"accounting {cluster.name}"):
        cluster.stop_accounting()
        yield cluster.name
        cluster.start_accounting()


@fault("node: network cut", scenes=ON_OPENPBS, lasts=(2, 20))
def node_cut_off(world: World, draw: float) -> Iterator[str]:
    cluster, node = choose(_nodes(world), draw)
    with claim(world, f"node {cluster.name} {node}"):
        cluster.cut(node)
        yield f"{cluster.name} {node}"
        cluster.connect(node)


@fault("site: stopped", scenes=("two-sites",), lasts=(10, 40))
def site_stopped(world: World, draw: float) -> Iterator[str]:
    """The whole second cluster loses its power."""
    cluster = world.sites[-1]
    nodes = cluster.nodes
    with claim(world, f"controller {cluster.name}", *(f"node {cluster.name} {node}" for node in nodes)):
        cluster.stop_controller(kill=True)
        _unsaved(world)
        for node in nodes:
            cluster.stop_node(node)
        yield cluster.name
        for node in nodes:
            cluster.start_node(node)
        cluster.start_controller()


def _unsaved(world: World) -> None:
    """slurmctld writes what it knows every few seconds: killed, it has not seen the last ends."""
    world.rewound.append((time.time() - UNSAVED, time.time()))


def _nodes(world: World) -> list[tuple[Cluster, str]]:
    return [(cluster, node) for cluster in world.sites for node in cluster.nodes]


def _answering(world: World, cluster: Cluster) -> None:
    """Raises NoVictimError: the controller of this cluster is hit already, so nobody can operate it."""
    if f"controller {cluster.name}" in world.claimed:
        raise NoVictimError
