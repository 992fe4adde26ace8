"""The job that each task finds itself to be: one of its own size, in its scheduler's words, in every way in.

A part of a scheduler's variables is worse than none: with the number of the pilot alone, `srun` starts a
command on each node of the pilot, `scancel` ends the tasks of others, and MPI looks in vain for the nodes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from adaptor.batch_script import OWN_SCRIPT, Dialect, Element, element_of
from adaptor.private_files import write_private
from adaptor.protocol.messages import BagContext, Lease
from adaptor.worker.jobs.commands import NodeCommands
from adaptor.worker.output import CannotStartError, remove_folder

_OF_PILOT = (
    *("SLURM_CLUSTER_NAME", "SLURM_JOB_ACCOUNT", "SLURM_JOB_PARTITION", "SLURM_JOB_QOS"),
    *("SLURM_JOB_START_TIME", "SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN"),
    *("PBS_O_QUEUE", "PBS_QUEUE"),
)
"""Variables of the worker that are true of a task too."""
NUMBERS = ("SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "JOB_ID")
"""The variables that differ between the tasks of a bag."""
_THREADS = ("NCPUS", "OMP_NUM_THREADS")  # variables that stay if a user has set them
_HOST_FILES = (
    *("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"),
    *("HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"),
)
"""Variables by which Open MPI 4 and 5, MPICH and Intel MPI find their nodes if they know no scheduler."""
_MEGABYTE = 2**20


def scheduler_of(worker: Mapping[str, str]) -> Dialect | None:
    """The scheduler whose job the worker runs in; None: none. `worker`: the worker's own environment."""
    if "PBS_JOBID" in worker:
        return "pbs"
    if "SLURM_JOB_ID" in worker:
        return "slurm"
    return "gridengine" if "JOB_ID" in worker and "SGE_ROOT" in worker else None


class TaskJobs:
    """Jobs in which the tasks of one worker find themselves."""

    def __init__(self, folder: Path, node: str, worker: Mapping[str, str], state: Path) -> None:
        """Args:
        folder: for files of this node (0700).
        worker: the worker's own environment.
        state: the state directory, where the daemon's files are on this machine too."""
        self._folder = folder
        self._node = node
        self._scheduler = scheduler_of(worker)
        self._commands = NodeCommands(folder / "bin", worker, state)
        self._of_pilot = {name: worker[name] for name in _OF_PILOT if name in worker}
        if "SLURM_JOB_END_TIME" in worker:  # the worker's own knowledge: Slurm's is wrong with --time-min
            end = float(worker.get("ADAPTOR_PILOT_END", worker["SLURM_JOB_END_TIME"]))
            self._of_pilot["SLURM_JOB_END_TIME"] = f"{end:.0f}"
        self._lists: dict[Path, str] = {}  # the lists of nodes that are written, with what they hold

    def environment(self, given: Mapping[str, str], bag: BagContext, lease: Lease) -> dict[str, str]:
        """The environment of a task. `given`: its variables besides the job's. Raises CannotStartError."""
        script = bag.script
        dialect = script.dialect if script is not None else self._scheduler
        if dialect is None:
            return dict(given)
        told = {**given, **self._of_pilot, **self._of(dialect, given, bag, lease)}
        if script is not None:
            told.update(script.variables)
            if dialect == "slurm" and lease.key.attempt > 1:
                told["SLURM_RESTART_COUNT"] = str(lease.key.attempt - 1)
        told.update(lease.environment or {})
        told.pop(OWN_SCRIPT, None)
        if dialect == "slurm":
            told["BASH_FUNC_srun%%"] = self._commands.function()
            told["PATH"] = f"{self._commands.ready()}:{given.get('PATH', os.defpath)}"
        return told

    def numbers(self, bag: BagContext, lease: Lease) -> dict[str, str]:
        """Variables that differ between the calls of a bag."""
        if self._scheduler is None:
            return {}
        told = _NUMBERED[self._scheduler](_element(bag, lease))
        return {name: value for name, value in told.items() if name in NUMBERS}

    def remove(self) -> None:
        """All files; the worker leaves."""
        remove_folder(self._folder)

    def _of(
        self, dialect: Dialect, given: Mapping[str, str], bag: BagContext, lease: Lease
    ) -> dict[str, str]:
        element, nodes, size = _element(bag, lease), lease.nodes or (self._node,), lease.task or bag.task
        if dialect == "slurm":
            told = of_slurm(element, nodes, size.processors)
            if "CUDA_VISIBLE_DEVICES" in given and given.get("ADAPTOR_GPUS"):
                told["SLURM_JOB_GPUS"] = given["ADAPTOR_GPUS"]
                told["SLURM_GPUS_ON_NODE"] = str(len(given["ADAPTOR_GPUS"].split(",")))
            if bag.script is None:
                told["SLURM_SUBMIT_DIR"] = lease.cwd or bag.cwd
                if size.memory is not None:
                    told["SLURM_MEM_PER_NODE"] = str(size.memory // _MEGABYTE)
            return told
        if dialect == "gridengine":
            told = of_grid_engine(element, nodes, size.processors)
            lines = [f"{node} {size.processors} all.q@{node} UNDEFINED" for node in nodes]
            told["PE_HOSTFILE"] = self._list("hosts", lines, lease)
            return told
        told = of_pbs(element, size.processors)
        count = size.processors if bag.script is None else bag.script.processes
        told["PBS_NODEFILE"] = self._list("nodes", [node for node in nodes for _ in range(count)], lease)
        if bag.script is None:
            told["PBS_O_WORKDIR"] = lease.cwd or bag.cwd
            told.update({name: given[name] for name in _THREADS if name in given})
        if len(nodes) > 1:
            # Without it MPI does not ask PBS's daemons to start processes, which know no job of this number.
            del told["PBS_ENVIRONMENT"], told["ENVIRONMENT"]
            told.update(dict.fromkeys(_HOST_FILES, told["PBS_NODEFILE"]))
        return told

    def _list(self, kind: str, lines: Sequence[str], lease: Lease) -> str:
        """A file with these lines: one for each size, of a task on several nodes one of its own."""
        key = lease.key
        own = f"{key.bag}.{key.task}.{key.attempt}" if len(lease.nodes) > 1 else str(len(lines))
        path, text = self._folder / f"{kind}-{own}", "".join(f"{line}\n" for line in lines)
        if self._lists.get(path) != text:
            try:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_private(path, text.encode())
            except OSError as error:
                raise CannotStartError(f"{path}: cannot be written: {error.strerror}") from error
            self._lists[path] = text
        return str(path)


def _element(bag: BagContext, lease: Lease) -> Element:
    if bag.script is None:
        return Element(lease.key.bag, lease.key.task, None)
    return element_of(bag.script, lease.key.bag, lease.key.task, lease.environment)


def of_slurm(element: Element, nodes: Sequence[str], processors: int) -> dict[str, str]:
    """The variables of sbatch(1) that a node knows: of a job that asked for nodes with `processors` each.

    Such a job has no SLURM_NTASKS: `srun` starts a command once on each node, and MPI has all processors.
    """
    short = [node.partition(".")[0] for node in nodes]
    listed, count = ",".join(short), str(len(nodes))
    each = str(processors) if len(nodes) == 1 else f"{processors}(x{count})"
    import getpass

    told = {
        **_number_of_slurm(element),
        "ENVIRONMENT": "BATCH",
        "HOSTNAME": short[0],
        "SLURMD_NODENAME": short[0],
        "SLURM_CPUS_ON_NODE": str(processors),
        "SLURM_GTIDS": "0",
        "SLURM_JOB_CPUS_PER_NODE": each,
        "SLURM_JOB_GID": str(os.getgid()),
        "SLURM_JOB_NODELIST": listed,
        "SLURM_JOB_NUM_NODES": count,
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_JOB_USER": getpass.getuser(),
        "SLURM_LOCALID": "0",
        "SLURM_NNODES": count,
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": listed,
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_PROCID": "0",
        "SLURM_TASKS_PER_NODE": each,
    }
    if element.index is not None:
        told["SLURM_ARRAY_JOB_ID"] = str(element.array_job)
    return told


def _number_of_slurm(element: Element) -> dict[str, str]:
    return dict.fromkeys(("SLURM_JOB_ID", "SLURM_JOBID"), str(element.job))


def of_pbs(element: Element, processors: int) -> dict[str, str]:
    """The variables of qsub(1B) that a node knows."""
    told = {
        **_number_of_pbs(element),
        "ENVIRONMENT": "BATCH",
        "NCPUS": str(processors),
        "OMP_NUM_THREADS": str(processors),
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBDIR": os.path.expanduser("~"),  # noqa: PTH111
        "PBS_NODENUM": "0",
        "PBS_O_SYSTEM": os.uname().sysname,
        "PBS_TASKNUM": "1",
    }
    if element.index is not None:
        told["PBS_ARRAY_ID"] = f"{element.array_job}[].adaptor"
    return told


def _number_of_pbs(element: Element) -> dict[str, str]:
    index = "" if element.index is None else f"[{element.index}]"
    return {"PBS_JOBID": f"{element.array_job}{index}.adaptor"}


def of_grid_engine(element: Element, nodes: Sequence[str], processors: int) -> dict[str, str]:
    """The variables of Grid Engine's qsub(1) that a node knows."""
    count, slots = str(len(nodes)), str(len(nodes) * processors)
    told = {**_number_of_grid_engine(element), "ENVIRONMENT": "BATCH", "HOSTNAME": nodes[0]}
    return {**told, "NHOSTS": count, "NQUEUES": count, "NSLOTS": slots, "RESTARTED": "0"}


def _number_of_grid_engine(element: Element) -> dict[str, str]:
    return {"JOB_ID": str(element.array_job)}


_NUMBERED = {"slurm": _number_of_slurm, "pbs": _number_of_pbs, "gridengine": _number_of_grid_engine}
