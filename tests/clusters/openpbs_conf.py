"""The files and settings of a throwaway OpenPBS."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

EXEC = Path("/opt/pbs")
"""Folder of the installed OpenPBS."""
DATABASE_USER = "postgres"
QUEUES = {
    "workq": "Priority=150",
    "express": "Priority=160 resources_max.walltime=00:30:00 resources_default.walltime=00:10:00",
    "scavenger": "Priority=10 resources_default.walltime=00:30:00",
}
"""Their settings; jobs of the first two preempt those of the last."""


@dataclass(frozen=True)
class ClusterOptions:
    """Options of a throwaway OpenPBS."""

    nodes: int = 4
    cpus: int = 4
    memory: int = 4
    """GB of a node."""
    gpus: int = 0
    """GPUs of a node, as a resource that PBS only counts; more than 0: its type is `gpu_type=a100`."""
    split: tuple[int, ...] = ()
    """The nodes (from 1) of which each is two vnodes with half of it each, as with one per socket."""
    preempt_order: str = "D"
    history: bool = True
    scheduler_iteration: int = 5
    """Seconds between two cycles of the scheduler where nothing happens."""
    cgroups: tuple[str, ...] = ()
    """The controllers by which the hook pbs_cgroups confines jobs (cpuset, memory, cpuacct); empty: it is
    off. Nodes share the cgroups of this machine: on several only cpuacct works."""
    extra: tuple[str, ...] = ()
    """Lines for qmgr."""


def head_conf(root: Path, head: str) -> str:
    """pbs.conf of the server and of all commands."""
    return (
        f"PBS_EXEC={EXEC}\nPBS_HOME={root}/head\nPBS_SERVER={head}\nPBS_SERVER_HOST_NAME={head}\n"
        f"PBS_LEAF_ROUTERS={head}\nPBS_START_SERVER=1\nPBS_START_SCHED=1\nPBS_START_COMM=1\nPBS_START_MOM=0\n"
        f"PBS_CORE_LIMIT=0\nPBS_DATA_SERVICE_USER={DATABASE_USER}\n"
    )


def node_conf(root: Path, head: str, node: str) -> str:
    """pbs.conf of one node."""
    return (
        f"PBS_EXEC={EXEC}\nPBS_HOME={root}/{node}\nPBS_SERVER={head}\nPBS_LEAF_ROUTERS={head}\n"
        f"PBS_LEAF_NAME={node}\nPBS_MOM_NODE_NAME={node}\nPBS_START_MOM=1\nPBS_CORE_LIMIT=0\n"
    )


def mom_config(head: str, temporary: Path) -> str:
    """Polls often, so that tests need not wait; all folders are shared.

    `temporary`: for the folders of jobs. In /var/tmp, one that an earlier cluster has left by the same number
    of a job is another user's: PBS holds the job, "due to possible security breach of job tmpdir".
    """
    polls = "$min_check_poll 1\n$max_check_poll 2\n"
    return f"$clienthost {head}\n$usecp *:/ /\n$tmpdir {temporary}\n{polls}"


def scheduled(config: str) -> str:
    """sched_config of a scheduler that counts GPUs, too."""
    return config.replace('resources: "ncpus,', 'resources: "ngpus, gpu_type, ncpus,')


def halves(node: str, options: ClusterOptions) -> str:
    """The vnode definition of a split node."""
    lines = [
        "$configversion 2",
        f"{node}: resources_available.ncpus = 0",
        f"{node}: resources_available.mem = 0",
    ]
    for half in range(2):
        name = f"{node}[{half}]"
        lines += [
            f"{name}: resources_available.ncpus = {options.cpus // 2}",
            f"{name}: resources_available.mem = {options.memory * 1024 // 2}mb",
            f"{name}: resources_available.arch = linux",
            f"{name}: sharing = default_shared",
        ]
    return "\n".join(lines) + "\n"


ACCEPTS = "import pbs\npbs.event().accept()\n"
"""A hook that changes nothing. With any for execjob_launch PBS starts programs of jobs another way: it cuts
their arguments at line breaks."""
_CGROUPS = EXEC / "lib" / "python" / "altair" / "pbs_hooks" / "pbs_cgroups.CF"


def cgroups_config(controllers: Sequence[str], prefix: str) -> str:
    """The configuration of pbs_cgroups as OpenPBS ships it, with these controllers and no memory set aside.

    Args:
        prefix: of its cgroups; it ends what it finds below and does not know, such as another cluster's jobs.
    """
    config = json.loads(_CGROUPS.read_text(encoding="utf-8"))
    config["cgroup_prefix"] = prefix
    for name, controller in config["cgroup"].items():
        controller["enabled"] = name in controllers
    config["cgroup"]["memory"]["reserve_amount"] = "0B"
    return json.dumps(config)


def settings(options: ClusterOptions, nodes: Sequence[str]) -> str:
    """Commands for qmgr."""
    lines = [
        "set server managers = root@*",
        "set server acl_roots = root@*",
        "set server flatuid = True",
        "set server query_other_jobs = True",
        "set server backfill_depth = 10",
        f"set server job_history_enable = {options.history}",
        f"set server scheduler_iteration = {options.scheduler_iteration}",
        "set server resources_default.walltime = 01:00:00",
        f"set sched default preempt_order = {options.preempt_order}",
    ]
    for name, given in QUEUES.items():
        lines += [] if name == "workq" else [f"create queue {name} queue_type=Execution"]
        values = (value.partition("=") for value in (*given.split(), "enabled=True", "started=True"))
        lines += [f"set queue {name} {key} = {value}" for key, _, value in values]
    if options.gpus:
        lines += ["create resource ngpus type=long, flag=hn", "create resource gpu_type type=string, flag=h"]
    for number, node in enumerate(nodes, start=1):
        lines.append(f"create node {node}")
        if options.gpus:
            lines.append(f"set node {node} resources_available.ngpus = {options.gpus}")
            lines.append(f"set node {node} resources_available.gpu_type = a100")
        if number not in options.split:
            lines.append(f"set node {node} resources_available.ncpus = {options.cpus}")
            lines.append(f"set node {node} resources_available.mem = {options.memory}gb")
    return "\n".join([*lines, *options.extra, "set server scheduling = True", ""])
