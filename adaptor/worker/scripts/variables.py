"""What a node tells the elements of a script in their environment, in the words of their scheduler."""

from __future__ import annotations

import getpass
import os

from adaptor.batch_script import Element


def of_slurm(element: Element, node: str, processors: int) -> dict[str, str]:
    """The variables of sbatch(1), "OUTPUT ENVIRONMENT VARIABLES", that a node knows."""
    short = node.partition(".")[0]
    told = {
        "ENVIRONMENT": "BATCH",
        "HOSTNAME": short,
        "SLURMD_NODENAME": short,
        "SLURM_CPUS_ON_NODE": str(processors),
        "SLURM_GTIDS": "0",
        "SLURM_JOBID": str(element.job),
        "SLURM_JOB_CPUS_PER_NODE": str(processors),
        "SLURM_JOB_GID": str(os.getgid()),
        "SLURM_JOB_ID": str(element.job),
        "SLURM_JOB_NODELIST": short,
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_JOB_USER": getpass.getuser(),
        "SLURM_LOCALID": "0",
        "SLURM_NNODES": "1",
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": short,
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_PROCID": "0",
    }
    if element.index is not None:
        told["SLURM_ARRAY_JOB_ID"] = str(element.array_job)
    return told


def of_pbs(element: Element, processors: int) -> dict[str, str]:
    """The variables of qsub(1B) that a node knows."""
    told = {
        "ENVIRONMENT": "BATCH",
        "NCPUS": str(processors),
        "OMP_NUM_THREADS": str(processors),
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBDIR": os.path.expanduser("~"),  # noqa: PTH111
        "PBS_JOBID": pbs_job(element),
        "PBS_NODENUM": "0",
        "PBS_O_SYSTEM": os.uname().sysname,
        "PBS_TASKNUM": "1",
    }
    if element.index is not None:
        told["PBS_ARRAY_ID"] = f"{element.array_job}[].adaptor"
    return told


def of_grid_engine(element: Element, node: str, processors: int) -> dict[str, str]:
    """The variables of Grid Engine's qsub(1) that a node knows."""
    told = {"ENVIRONMENT": "BATCH", "HOSTNAME": node, "JOB_ID": str(element.array_job)}
    return {**told, "NHOSTS": "1", "NQUEUES": "1", "NSLOTS": str(processors), "RESTARTED": "0"}


def pbs_job(element: Element) -> str:
    index = "" if element.index is None else f"[{element.index}]"
    return f"{element.array_job}{index}.adaptor"
