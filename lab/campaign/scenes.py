"""The scenes of a campaign: one bag on real clusters, each scene with what it is about."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.campaign.limits import MINUTES, PENDING, PILOTS, PROCESSORS
from lab.campaign.local_jobs import LocalJobs, runtime_directory
from lab.campaign.schedulers.cluster import Cluster
from lab.campaign.schedulers.on_openpbs import OpenPbsCluster
from lab.campaign.schedulers.on_slurm import ACCOUNTS, SlurmCluster
from lab.campaign.small_disk import DiskMaker, failing_disk, quota_disk, small_disk
from lab.campaign.world import World
from tests.clusters import openpbs as pbs
from tests.clusters import slurm, slurm_accounting, slurm_conf
from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.clusters.openpbs_conf import ClusterOptions as PbsOptions
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
    limits:
      max_pending_requests: {PENDING}
      max_pilots: {PILOTS}
      max_proc: {PROCESSORS}
      max_tr: {MINUTES}m
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
    most: int = PILOTS
    """Requests in the system of each site."""
    disk: DiskMaker = small_disk
    """Makes those of the state directory and of the output."""
    scheduler: Callable[[], str | None] = slurm.available
    """Says why there is none here."""


def plain(stack: ExitStack, lab: Lab) -> World:
    return _over_tcp(stack, lab, _slurm(stack, "hpc"))


def accounting(stack: ExitStack, lab: Lab) -> World:
    return _over_tcp(stack, lab, _slurm(stack, "hpc", accounting=True, min_job_age=2))


def limits(stack: ExitStack, lab: Lab) -> World:
    terms = {"accounts": ACCOUNTS, "extra": slurm_conf.ACCOUNTS.extra}
    return _over_tcp(stack, lab, _slurm(stack, "hpc", accounting=True, **terms))


def few_requests(stack: ExitStack, lab: Lab) -> World:
    world = plain(stack, lab)
    assert lab.config is not None
    lab.configure(lab.config.read_text().replace(f"      max_pilots: {PILOTS}\n", ""))
    return world


def openpbs(stack: ExitStack, lab: Lab) -> World:
    return _over_tcp(stack, lab, _openpbs(stack, "hpc"))


def spool(stack: ExitStack, lab: Lab) -> World:
    return _over_spool(stack, lab, _slurm)


def openpbs_spool(stack: ExitStack, lab: Lab) -> World:
    return _over_spool(stack, lab, _openpbs)


def ssh(stack: ExitStack, lab: Lab) -> World:
    far = _slurm(stack, "far")
    world = World(lab, [far])
    _configure(world, {"far": _over_ssh(stack, world, far)})
    return world


def two_sites(stack: ExitStack, lab: Lab) -> World:
    near, far = _slurm(stack, "near"), _slurm(stack, "far", nodes=2)
    world = World(lab, [near, far])
    _configure(world, {"near": _here(near), "far": _over_ssh(stack, world, far)})
    return world


def donation_by_scheduler(stack: ExitStack, lab: Lab) -> World:
    cluster = _slurm(stack, "hpc")
    world = World(lab, [cluster])
    world.local_jobs = LocalJobs(cluster.slurm, lab.root)
    donation = "    donation: {mode: preemptible, partition: scavenger}\n"
    _configure(world, {"hpc": f"{_here(cluster)}{donation}"})
    return world


def donation_by_agents(stack: ExitStack, lab: Lab) -> World:
    hooks = lab.root / "hooks"
    lines = (f"Prolog={hooks}/adaptor-prolog", f"Epilog={hooks}/adaptor-epilog")
    throwaway = _throwaway_slurm(extra=(*lines, "PrologFlags=Alloc,DeferBatch"))
    cluster = SlurmCluster("hpc", throwaway)
    world = World(lab, [cluster])
    world.local_jobs = LocalJobs(throwaway, lab.root)
    donation = f"{{mode: agent, runtime_directory: {runtime_directory(lab.root)}, reclaim_timeout: 5s}}"
    _configure(world, {"hpc": f"{_here(cluster)}    donation: {donation}\n"})
    lab.run("site", "install-hooks", "hpc", "--write", hooks)
    stack.enter_context(throwaway)
    return world


SCENES = {
    scene.name: scene
    for scene in (
        Scene("plain", "workers connect to the daemon", plain),
        Scene("few-requests", "few wide requests, not many pilots", few_requests, most=PENDING),
        Scene("spool", "messages pass as files", spool),
        Scene("ssh", "the cluster is reached over ssh, its workers through a tunnel", ssh),
        Scene("two-sites", "one cluster here, one over ssh", two_sites, processors=32 + 16),
        Scene("donation-scheduler", "idle nodes by jobs that may be preempted", donation_by_scheduler),
        Scene("donation-agents", "idle nodes outside the scheduler", donation_by_agents),
        Scene("budget", "credits that are short", plain, submit_options=("--budget", "60")),
        Scene("quota", "the user's disks have a quota", plain, disk=quota_disk),
        Scene("failing-disk", "a disk that fails becomes read-only", plain, disk=failing_disk),
        Scene(
            "accounting",
            "slurmdbd has the records, and Slurm forgets",
            accounting,
            scheduler=slurm_accounting.available,
        ),
        Scene(
            "limits",
            "limits of the account and the QOS change",
            limits,
            scheduler=slurm_accounting.available,
        ),
        Scene("openpbs", "workers connect to the daemon", openpbs, scheduler=pbs.unavailable),
        Scene("openpbs-spool", "messages pass as files", openpbs_spool, scheduler=pbs.unavailable),
    )
}


@contextmanager
def stage(scene: Scene, root: Path) -> Iterator[World]:
    """All that the scene needs, started; and everything ended on leaving."""
    with ExitStack() as stack:
        lab = Lab(root)
        state = stack.enter_context(scene.disk(lab.state, 128))
        output = stack.enter_context(scene.disk(root / "output", 32))
        world = scene.build(stack, lab)
        world.state_disk, world.output_disk = state, output
        stack.callback(lab.close)
        yield world


def _throwaway_slurm(**options: Any) -> ThrowawaySlurm:
    return ThrowawaySlurm(
        ClusterOptions(**{"nodes": NODES, "cpus": CPUS, "min_job_age": REMEMBER, **options}), patience=60
    )


def _slurm(stack: ExitStack, name: str, **options: Any) -> SlurmCluster:
    return SlurmCluster(name, stack.enter_context(_throwaway_slurm(**options)))


def _openpbs(stack: ExitStack, name: str) -> OpenPbsCluster:
    return OpenPbsCluster(name, stack.enter_context(ThrowawayOpenPbs(PbsOptions(nodes=NODES, cpus=CPUS))))


def _over_tcp(stack: ExitStack, lab: Lab, cluster: Cluster) -> World:
    world = World(lab, [cluster])
    (port,) = free_ports(1)
    world.proxy, world.proxied_site = stack.enter_context(Proxy(port, cluster.address)), cluster.name
    _configure(world, {cluster.name: _here(cluster)}, f"host: {cluster.address}\n  port: {port}")
    return world


def _over_spool(stack: ExitStack, lab: Lab, make: Callable[[ExitStack, str], Cluster]) -> World:
    # Before the cluster: nodes with mounts of their own see no later one.
    disk = stack.enter_context(small_disk(lab.root / "shared", 32))
    cluster = make(stack, "hpc")
    world = World(lab, [cluster])
    world.spool_disk, world.spool = disk, lab.root / "shared" / "spool"
    _configure(world, {"hpc": f"{_here(cluster)}    spool: {world.spool}\n"}, f"host: {cluster.address}")
    return world


def _here(cluster: Cluster) -> str:
    """The lines of a site whose commands run on this machine."""
    return f"{cluster.site}    environment: {json.dumps(cluster.environment)}\n"


def _over_ssh(stack: ExitStack, world: World, cluster: Cluster) -> str:
    """The lines of a site behind an sshd, with a proxy on the way to it."""
    world.sshd = stack.enter_context(ThrowawaySshd())
    world.proxy = stack.enter_context(Proxy(world.sshd.port))
    reached = {**world.sshd.site(world.proxy.port), "directory": str(world.lab.root / "over there")}
    environment = {**cluster.environment, "PATH": "/usr/bin:/bin"}
    return (
        f"{cluster.site}    python: {sys.executable}\n    ssh: {reached}\n"
        f"    environment: {json.dumps(environment)}\n"
    )


def _configure(world: World, sites: dict[str, str], daemon: str = "host: 127.0.0.1") -> None:
    text = "".join(f"  {name}:\n{_SITE}{more}" for name, more in sites.items())
    world.lab.configure(f"sites:\n{text}daemon:\n  worker_timeout: 8\n  {daemon}\n")
