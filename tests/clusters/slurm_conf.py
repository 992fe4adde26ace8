"""The text of a slurm.conf that runs many nodes on one host."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.clusters.slurm_accounting import slurm_conf_lines


@dataclass(frozen=True)
class Partition:
    """One partition; `settings` is what stands after the name in slurm.conf."""

    name: str
    settings: str = ""


DEFAULT_PARTITIONS = (
    Partition("batch", "Default=YES MaxTime=4:00:00 PriorityTier=10 PreemptMode=OFF"),
    Partition("short", "MaxTime=10 PriorityTier=10 PreemptMode=OFF"),
    Partition("scavenger", "MaxTime=1:00:00 PriorityTier=1 PreemptMode=CANCEL GraceTime=5"),
)


@dataclass(frozen=True)
class ClusterOptions:
    """Options of a throwaway cluster."""

    nodes: int = 4
    cpus: int = 4
    memory: int = 4000
    """MiB of a node; only counted when `select` names memory."""
    select: str = "CR_CPU"
    partitions: tuple[Partition, ...] = DEFAULT_PARTITIONS
    """On all nodes, unless the settings say `Nodes=…` themselves."""
    scheduler_parameters: str = "bf_interval=2,sched_interval=2,bf_continue,batch_sched_delay=1"
    min_job_age: int = 300
    """Seconds for which slurmctld remembers an ended job."""
    kill_wait: int = 5
    task_plugin: str = "task/none"
    """Plugin that binds steps; with `task/affinity` a node may claim no more processors than this machine
    has."""
    extra: tuple[str, ...] = ()
    """Lines for the end of slurm.conf."""
    node_settings: dict[str, str] = field(default_factory=dict)
    """Further settings of single nodes, by name; those of the same key replace what all nodes have."""
    gres: tuple[str, ...] = ()
    """Lines of gres.conf."""
    accounting: bool = False
    """Whether a slurmdbd keeps the records of all jobs."""
    accounts: tuple[str, ...] = ()
    """With accounting: what `sacctmgr -i` is told before slurmctld starts."""
    job_submit: str = ""
    """The text of a job_submit.lua that slurmctld asks of every job; empty: none."""

    @property
    def node_names(self) -> tuple[str, ...]:
        return tuple(f"n{number}" for number in range(1, self.nodes + 1))


MIXED = ClusterOptions(
    select="CR_CPU_Memory",
    node_settings={
        "n1": "CPUs=4 RealMemory=4000 Feature=old,slow Weight=4",
        "n2": "CPUs=6 RealMemory=8000 Feature=old Weight=3",
        "n3": "CPUs=8 RealMemory=16000 Feature=new Gres=gpu:2 Weight=2",
        "n4": "CPUs=4 RealMemory=8000 Feature=new,fast Gres=gpu:a100:2 Weight=1",
    },
    gres=("NodeName=n3 Name=gpu File=/dev/tty[1-2]", "NodeName=n4 Name=gpu Type=a100 File=/dev/tty[3-4]"),
    extra=("GresTypes=gpu", "Licenses=matlab:2"),
)
"""Four nodes of different size, memory counted, GPUs on two of them."""


_THREADS = {f"n{number}": "CPUs=8 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2" for number in (1, 2)}
BOUNDS = (
    Partition("batch", "Default=YES MaxTime=4:00:00"),
    Partition("memory", "MaxMemPerCPU=200 MaxTime=4:00:00"),
    Partition("half", "MaxCPUsPerNode=2 MaxTime=4:00:00"),
    Partition("wide", "MinNodes=2 MaxTime=4:00:00"),
    Partition("whole", "OverSubscribe=EXCLUSIVE MaxTime=4:00:00"),
)
"""Partitions of the same nodes, each with a bound of its own."""
CORES = ClusterOptions(
    nodes=2, cpus=8, select="CR_Core_Memory", partitions=BOUNDS, node_settings=_THREADS, accounting=True
)
"""Two nodes of four cores with two threads each; cores are given."""
ONE_TASK = replace(CORES, select="CR_Core_Memory,CR_ONE_TASK_PER_CORE")
THREADS = replace(CORES, select="CR_CPU_Memory")
"""The same with single threads given. (Slurm refuses CR_ONE_TASK_PER_CORE beside it.)"""
SOCKETS = ClusterOptions(
    nodes=2,
    cpus=8,
    select="CR_Core_Memory",
    partitions=(*BOUNDS[:1], Partition("socket", "MaxCPUsPerSocket=2 MaxTime=4:00:00")),
    node_settings=dict.fromkeys(_THREADS, "CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=1"),
    accounting=True,
)
"""Two nodes of two sockets; MaxCPUsPerSocket is new in Slurm 23.02."""
WHOLE_SOCKETS = replace(SOCKETS, select="CR_Socket_Memory", partitions=BOUNDS[:4])
ACCOUNTS = ClusterOptions(
    accounting=True,
    partitions=BOUNDS[:1],
    extra=(
        "AccountingStorageEnforce=associations,limits,qos,safe",
        "PriorityType=priority/multifactor",  # without it, used minutes are not counted
        "PriorityDecayHalfLife=14-0",
        "PriorityCalcPeriod=1",
    ),
)
"""Slurm keeps to the limits of accounts and QOS."""


@dataclass(frozen=True)
class Ports:
    controller: int
    accounting: int
    nodes: tuple[int, ...]


def slurm_conf(options: ClusterOptions, root: Path, host: str, user: str, ports: Ports) -> str:
    """The whole file; everything that the cluster writes lies below `root`."""
    return "\n".join(
        [
            *_general_lines(options, root, host, user, ports),
            *_node_lines(options, host, ports.nodes),
            *(_partition_line(partition) for partition in options.partitions),
            *options.extra,
            "",
        ]
    )


def _general_lines(options: ClusterOptions, root: Path, host: str, user: str, ports: Ports) -> list[str]:
    settings: dict[str, str | int] = {
        "ClusterName": "throwaway",
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmctldPort": ports.controller,
        "SlurmUser": user,
        "SlurmdUser": user,
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={root}/munge.socket",
        "StateSaveLocation": f"{root}/state",
        "SlurmdSpoolDir": f"{root}/spool.%n",
        "SlurmctldPidFile": f"{root}/slurmctld.pid",
        "SlurmdPidFile": f"{root}/slurmd.%n.pid",
        "SlurmctldLogFile": f"{root}/slurmctld.log",
        "SlurmdLogFile": f"{root}/slurmd.%n.log",
        "SlurmdParameters": "config_overrides",  # a node may claim more processors than the host has
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": options.task_plugin,
        "MpiDefault": "none",
        "SwitchType": "switch/none",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": options.scheduler_parameters,
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": options.select,
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "CANCEL",
        "ReturnToService": 2,
        "MinJobAge": options.min_job_age,
        "KillWait": options.kill_wait,
        "MailProg": "/bin/true",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
    }
    if options.job_submit:
        settings["JobSubmitPlugins"] = "lua"
    if options.accounting:
        settings |= slurm_conf_lines(root, ports.accounting)
    return [f"{key}={value}" for key, value in settings.items()]


def _node_lines(options: ClusterOptions, host: str, ports: tuple[int, ...]) -> list[str]:
    return [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {_node_settings(options, name)}"
        for name, port in zip(options.node_names, ports, strict=True)
    ]


def _node_settings(options: ClusterOptions, name: str) -> str:
    common = {"CPUs": str(options.cpus), "RealMemory": str(options.memory)}
    own = dict(word.split("=", 1) for word in options.node_settings.get(name, "").split())
    return " ".join(f"{key}={value}" for key, value in (common | own).items())


def _partition_line(partition: Partition) -> str:
    named = any(word.startswith("Nodes=") for word in partition.settings.split())
    nodes = "" if named else " Nodes=ALL"
    return f"PartitionName={partition.name} State=UP{nodes} {partition.settings}".rstrip()
