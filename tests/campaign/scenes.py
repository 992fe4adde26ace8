"""The scenes of a campaign: one bag on real clusters, each scene with what it is about."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.campaign.limits import MINUTES, PENDING, PROCESSORS
from tests.campaign.local_jobs import runtime_directory
from tests.campaign.small_disk import small_disk
from tests.campaign.world import World
from tests.clusters.processes import free_ports
from tests.clusters.proxy import Proxy
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.clusters.sshd import ThrowawaySshd
from tests.e2e.lab import Lab

NODES, CPUS = 4, 8
REMEMBER = 86400
"""Seconds for which Slurm keeps its records: the credits are counted again from them."""

_SITE = f"""\
    backend: slurm
    partition: batch
    limits: {{max_pending_requests: {PENDING}, max_proc: {PROCESSORS}, max_tr: {MINUTES}m}}
    initial_tr: 30s
    pad: 10s
    idle_timeout: 6
    grace_time: 3
    poll_interval: 2
    max_submissions: 6000/h
    command_timeout: 8
    overrun: 1m
    price: {{explicit: 10, donated: 2}}
    charging_unit: 10s
"""


@dataclass(frozen=True)
class Scene:
    name: str
    about: str
    build: Callable[[ExitStack, Lab], World]
    processors: int = NODES * CPUS
    submit_options: tuple[str, ...] = ()


def plain(stack: ExitStack, lab: Lab) -> World:
    world = World(lab, [("hpc", stack.enter_context(_cluster()))])
    (port,) = free_ports(1)
    world.proxy, world.proxied_site = stack.enter_context(Proxy(port)), "hpc"
    _configure(world, {"hpc": _environment(world)}, f"host: 127.0.0.1\n  port: {port}")
    return world


def spool(stack: ExitStack, lab: Lab) -> World:
    world = World(lab, [("hpc", stack.enter_context(_cluster()))])
    world.spool_disk = stack.enter_context(small_disk(lab.root / "shared", 32))
    world.spool = lab.root / "shared" / "spool"
    _configure(world, {"hpc": f"{_environment(world)}    spool: {world.spool}\n"})
    return world


def ssh(stack: ExitStack, lab: Lab) -> World:
    world = World(lab, [("far", stack.enter_context(_cluster()))])
    _configure(world, {"far": _over_ssh(stack, world, world.sites[0][1])})
    return world


def two_sites(stack: ExitStack, lab: Lab) -> World:
    near, far = stack.enter_context(_cluster()), stack.enter_context(_cluster(nodes=2))
    world = World(lab, [("near", near), ("far", far)])
    _configure(world, {"near": _environment(world), "far": _over_ssh(stack, world, far)})
    return world


def donation_by_scheduler(stack: ExitStack, lab: Lab) -> World:
    world = World(lab, [("hpc", stack.enter_context(_cluster()))])
    _configure(
        world,
        {"hpc": f"{_environment(world)}    donation: {{mode: preemptible, partition: scavenger}}\n"},
    )
    return world


def donation_by_agents(stack: ExitStack, lab: Lab) -> World:
    hooks = lab.root / "hooks"
    lines = (f"Prolog={hooks}/adaptor-prolog", f"Epilog={hooks}/adaptor-epilog")
    cluster = ThrowawaySlurm(
        ClusterOptions(
            nodes=NODES, cpus=CPUS, min_job_age=REMEMBER, extra=(*lines, "PrologFlags=Alloc,DeferBatch")
        ),
        patience=60,
    )
    world = World(lab, [("hpc", cluster)])
    donation = f"{{mode: agent, runtime_directory: {runtime_directory(lab.root)}, reclaim_timeout: 5s}}"
    _configure(world, {"hpc": f"{_environment(world)}    donation: {donation}\n"})
    lab.run("site", "install-hooks", "hpc", "--write", hooks)
    stack.enter_context(cluster)
    return world


SCENES = {
    scene.name: scene
    for scene in (
        Scene("plain", "workers connect to the daemon", plain),
        Scene("spool", "messages pass as files", spool),
        Scene("ssh", "the cluster is reached over ssh, its workers through a tunnel", ssh),
        Scene("two-sites", "one cluster here, one over ssh", two_sites, processors=32 + 16),
        Scene("donation-scheduler", "idle nodes by jobs that may be preempted", donation_by_scheduler),
        Scene("donation-agents", "idle nodes outside the scheduler", donation_by_agents),
        Scene("budget", "credits that are short", plain, submit_options=("--budget", "60")),
    )
}


@contextmanager
def stage(scene: Scene, root: Path) -> Iterator[World]:
    """All that the scene needs, started; and everything ended on leaving."""
    with ExitStack() as stack:
        lab = Lab(root)
        state = stack.enter_context(small_disk(lab.state, 128))
        output = stack.enter_context(small_disk(root / "output", 32))
        world = scene.build(stack, lab)
        world.state_disk, world.output_disk = state, output
        stack.callback(lab.close)
        yield world


def _cluster(nodes: int = NODES) -> ThrowawaySlurm:
    return ThrowawaySlurm(ClusterOptions(nodes=nodes, cpus=CPUS, min_job_age=REMEMBER), patience=60)


def _environment(world: World) -> str:
    return f"    environment: {{SLURM_CONF: {world.sites[0][1].conf}}}\n"


def _over_ssh(stack: ExitStack, world: World, cluster: ThrowawaySlurm) -> str:
    """The lines of a site behind an sshd, with a proxy on the way to it."""
    world.sshd = stack.enter_context(ThrowawaySshd())
    world.proxy = stack.enter_context(Proxy(world.sshd.port))
    reached = {**world.sshd.site(world.proxy.port), "directory": str(world.lab.root / "over there")}
    return (
        f"    python: {sys.executable}\n    ssh: {reached}\n"
        f'    environment: {{SLURM_CONF: {cluster.conf}, PATH: "/usr/bin:/bin"}}\n'
    )


def _configure(world: World, sites: dict[str, str], daemon: str = "host: 127.0.0.1") -> None:
    text = "".join(f"  {name}:\n{_SITE}{more}" for name, more in sites.items())
    world.lab.configure(f"sites:\n{text}daemon:\n  worker_timeout: 8\n  {daemon}\n")
