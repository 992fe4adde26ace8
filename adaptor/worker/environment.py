"""The environment of a task: its bag's, what the node and the site's prologue add, its own. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from adaptor.protocol.messages import BagContext, Lease

FROM_NODE = (
    *("TMPDIR", "SLURM_CONF"),
    *("CUDA_DEVICE_ORDER", "ADAPTOR_SUPERVISED"),
)
"""Variables of the worker that every task gets. ADAPTOR_SUPERVISED marks processes that have lost both worker
and supervisor. What a scheduler says of the pilot is not true of a task: `as_job` has what is."""
_PERSON = ("HOME", "USER", "LOGNAME", "SHELL", "LANG")
_PATH = "/usr/local/bin:/usr/bin:/bin"  # with `_PERSON`, the environment of a task whose bag brings none
_NOT_FROM_PROLOGUE = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
NODEFILE = "ADAPTOR_NODEFILE"  # names the file with the nodes of a task that takes several
_SCRATCH = re.compile(r"(?:SLURM|PBS)_\w*(?:TMP|SCRATCH|JOBFS)\w*")
"""Variables of a site's prolog that name folders for the jobs of a node: `SLURM_TMPDIR`, `PBS_JOBFS`."""
_NOT_BINDING = {
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "I_MPI_PIN": "off",
}
"""Variables by which Open MPI 4 and 5 and Intel MPI bind nothing; MPICH binds nothing by itself."""
_SCHEDULERS = ("ADAPTOR_", "SLURM_", "SLURMD_", "SRUN_", "PBS_", "PMI_", "PMIX_")
"""Prefixes of variables that are meant for the worker itself."""


class NodeEnvironment:
    """Variables of all tasks on this node."""

    def __init__(self, worker: Mapping[str, str], before: Mapping[str, str] | None) -> None:
        """`worker`: the worker's own environment. `before`: the one before the site's prologue, if any."""
        self._minimal = {"PATH": _PATH, **{name: worker[name] for name in _PERSON if name in worker}}
        self._added = {
            name: value for name, value in worker.items() if name in FROM_NODE or _SCRATCH.fullmatch(name)
        }
        self._removed: frozenset[str] = frozenset()
        if before is not None:
            changed, self._removed = differences(before, worker)
            self._added.update(changed)

    def of_bag(self, bag: BagContext) -> dict[str, str]:
        """Variables of all tasks of a bag on this node."""
        environment = dict(bag.environment or self._minimal)
        for name in self._removed:
            environment.pop(name, None)
        environment.update(self._added)
        return environment


def of_task(
    shared: Mapping[str, str], bag: BagContext, lease: Lease, deadline: float, *, bound: bool
) -> dict[str, str]:
    """The whole environment of one attempt.

    Args:
        deadline: epoch seconds at which the worker will end it.
        bound: whether the kernel lets it use its own processors only.
    """
    own = {"PWD": lease.cwd or bag.cwd, **of_lease(bag, lease, deadline)}
    return {**({} if bound else _unbound(bag, lease)), **shared, **own}


def _unbound(bag: BagContext, lease: Lease) -> dict[str, str]:
    """Variables of a task that may use all processors of a node which others use too.

    Without them, a program would start a thread for each processor, and each MPI bind its processes to the
    same first ones.
    """
    size = lease.task or bag.task
    if size.nodes > 1:
        return {}
    if size.processors == 1 or bag.script is not None:  # a script finds what its scheduler says
        return dict(_NOT_BINDING)
    return {"OMP_NUM_THREADS": str(size.processors), **_NOT_BINDING}


def of_lease(bag: BagContext, lease: Lease, deadline: float) -> dict[str, str]:
    """Variables of one attempt. `deadline`: epoch seconds at which the worker will end it."""
    key = lease.key
    return {
        **(lease.environment or {}),
        "ADAPTOR_BAG_ID": str(key.bag),
        "ADAPTOR_TASK_ID": str(key.task),
        "ADAPTOR_ATTEMPT": str(key.attempt),
        "ADAPTOR_CPUS": str((lease.task or bag.task).processors),
        "ADAPTOR_DEADLINE": f"{deadline:.0f}",
    }


def on_several(nodes: Sequence[str], path: str) -> dict[str, str]:
    """Additional variables of a task on several nodes. `path`: of the file that names them."""
    return {NODEFILE: path, "ADAPTOR_NODES": str(len(nodes))}


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """Variables that a prologue has set or changed, and those that it has removed."""
    changed = {
        name: value for name, value in after.items() if before.get(name) != value and _of_prologue(name)
    }
    return changed, frozenset(name for name in before if name not in after and _of_prologue(name))


def parse_env0(data: bytes) -> dict[str, str]:
    """The output of `env -0`."""
    entries = (entry.partition(b"=") for entry in data.split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, equals, value in entries if name and equals}


def _of_prologue(name: str) -> bool:
    if _SCRATCH.fullmatch(name):
        return True
    return name not in _NOT_FROM_PROLOGUE and not name.startswith(_SCHEDULERS)
