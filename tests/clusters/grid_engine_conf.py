"""The files and settings of a throwaway Grid Engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

INSTALLED = Path("/opt/gridengine")
"""Folder in which `install-gridengine` unpacks Debian's packages: a folder of their own, since their commands
have the names of those of PBS."""
BINARIES = INSTALLED / "usr/lib/gridengine"
SHARE = INSTALLED / "usr/share/gridengine"
ARCH = "lx-amd64"
"""Grid Engine's name for this kind of machine."""
PES = {"smp": "$pe_slots", "mpi": "$fill_up"}
"""Parallel environments and their rules of allocation."""

QUEUES = {"all.q": "INFINITY", "short.q": "0:30:0"}
"""Their limits of run time."""
_NONE = (
    *("prolog", "epilog", "starter_method", "suspend_method", "resume_method", "terminate_method"),
    *(
        "owner_list",
        "user_lists",
        "xuser_lists",
        "subordinate_list",
        "complex_values",
        "projects",
        "xprojects",
    ),
    "calendar",
)
"""Settings that a queue does not have."""


@dataclass(frozen=True)
class GridOptions:
    """Options of a throwaway Grid Engine."""

    nodes: int = 4
    slots: int = 4
    memory: int = 4
    """GB of a node; jobs that name `h_vmem` hold as much of it for each slot."""


def bootstrap(root: Path) -> str:
    """File that the daemons and commands read first."""
    return (
        "admin_user none\ndefault_domain none\nignore_fqdn false\nspooling_method classic\n"
        f"spooling_lib libspoolc\nspooling_params {root}/default/common;{root}/qmaster\n"
        f"binary_path {BINARIES}\nqmaster_spool_dir {root}/qmaster\nsecurity_mode none\n"
        "listener_threads 2\nworker_threads 2\nscheduler_threads 1\n"
    )


def configuration(root: Path) -> str:
    """Debian's, but for the place of the files, and quick: reports each second, records without delay."""
    return _changed(
        (SHARE / "default-configuration").read_text(encoding="utf-8"),
        {
            "execd_spool_dir": f"{root}/execd",
            "shell_start_mode": "unix_behavior",
            "min_uid": "0",
            "min_gid": "0",
            "load_report_time": "00:00:01",
            "reporting_params": "accounting=true reporting=false flush_time=00:00:01 joblog=false "
            "sharelog=00:00:00",
        },
    )


def scheduler(shown: str) -> str:
    """The scheduler's configuration, from the one shown: it looks each second, and plans for some jobs."""
    return _changed(
        shown,
        {
            "schedule_interval": "0:0:1",
            "flush_submit_sec": "1",
            "flush_finish_sec": "1",
            "max_reservation": "20",
            "schedd_job_info": "true",
        },
    )


_UNLIMITED = (
    "s_rt",
    *(f"{kind}_{what}" for what in ("cpu", "fsize", "data", "stack", "core", "rss", "vmem") for kind in "sh"),
)


def queue(name: str, limit: str, options: GridOptions) -> str:
    """A queue on all hosts. `limit`: `h_rt` of its jobs."""
    return _lines(
        {
            "qname": name,
            "hostlist": "@allhosts",
            "seq_no": "0",
            "load_thresholds": "NONE",
            "suspend_thresholds": "NONE",
            "nsuspend": "1",
            "suspend_interval": "00:05:00",
            "priority": "0",
            "min_cpu_interval": "00:05:00",
            "processors": "UNDEFINED",
            "qtype": "BATCH INTERACTIVE",
            "ckpt_list": "NONE",
            "pe_list": " ".join(PES),
            "rerun": "FALSE",
            "slots": str(options.slots),
            "tmpdir": "/tmp",
            "shell": "/bin/sh",
            "shell_start_mode": "unix_behavior",
            "notify": "00:00:05",
            "initial_state": "default",
            "h_rt": limit,
            **dict.fromkeys(_UNLIMITED, "INFINITY"),
            **dict.fromkeys(_NONE, "NONE"),
        }
    )


def parallel_environment(name: str) -> str:
    """One for as many slots as there are."""
    return _lines(
        {
            "pe_name": name,
            "slots": "999",
            "user_lists": "NONE",
            "xuser_lists": "NONE",
            "start_proc_args": "NONE",
            "stop_proc_args": "NONE",
            "allocation_rule": PES[name],
            "control_slaves": "TRUE",
            "job_is_first_task": "FALSE",
            "urgency_slots": "min",
            "accounting_summary": "TRUE",
            "qsort_args": "NONE",
        }
    )


def execution_host(name: str, options: GridOptions) -> str:
    """A node that has so many slots in all its queues together, and memory to be given to jobs."""
    names = ("load_scaling", "user_lists", "xuser_lists", "projects", "xprojects", "usage_scaling")
    amounts = f"slots={options.slots},h_vmem={options.memory}G"
    return _lines(
        {
            "hostname": name,
            "complex_values": amounts,
            "report_variables": "NONE",
            **dict.fromkeys(names, "NONE"),
        }
    )


def host_group(nodes: Sequence[str]) -> str:
    """All nodes."""
    return _lines({"group_name": "@allhosts", "hostlist": " ".join(nodes)})


def with_memory(complexes: str) -> str:
    """The complexes with `h_vmem` given to jobs as slots are, 1 GB for each slot of a job that names none.

    Where the default stays 0, Grid Engine kills jobs that name none.
    """
    given = "h_vmem h_vmem MEMORY <= YES YES 1G 0"
    lines = [given if line.startswith("h_vmem ") else line for line in complexes.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _lines(values: Mapping[str, str]) -> str:
    return "".join(f"{name} {value}\n" for name, value in values.items())


def _changed(shown: str, wanted: Mapping[str, str]) -> str:
    """With other values of some names, of which there is one on each line."""
    names = [line.split()[0] if line.split() else "" for line in shown.splitlines()]
    kept = [line for name, line in zip(names, shown.splitlines(), strict=True) if name not in wanted]
    return "".join(f"{line}\n" for line in kept) + _lines(wanted)
