"""The copies of batch scripts on this node, and what their tasks find in their environment."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from adaptor.batch_script import OWN_SCRIPT, Element, element_of, script_of
from adaptor.private_files import write_atomically
from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.worker.output import CannotStartError, OutputFolder, ScriptOutput
from adaptor.worker.srun import SLOTS

_EXECUTABLE = 0o700
_READ_ONLY = 0o500
_LONGEST_FIRST = 127  # bytes of a `#!` line that every Linux takes
_TMPDIRS = ("SLURM_TMPDIR", "TMPDIR")
_JOB_IDS = ("SLURM_JOB_ID", "PBS_JOBID", "JOB_ID")
_OF_PILOT = (
    *("SLURM_CLUSTER_NAME", "SLURM_JOB_ACCOUNT", "SLURM_JOB_PARTITION", "SLURM_JOB_QOS"),
    *("SLURM_JOB_START_TIME", "SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN"),
    *("PBS_O_QUEUE", "PBS_QUEUE"),
)
"""Variables of the worker that are true of an element too."""


class Scripts:
    """In a folder for this node (0700) among the files of the pilot."""

    def __init__(self, folder: Path, node: str, worker: Mapping[str, str]) -> None:
        """`worker`: the worker's own environment."""
        self._folder = folder / f"scripts-{node.replace('/', '_')}"
        self._scratch = scratch_of(worker)
        self._node = node
        self._of_pilot = {name: worker[name] for name in _OF_PILOT if name in worker}
        if "SLURM_JOB_END_TIME" in worker:  # as the worker knows it: Slurm's own is wrong with --time-min
            end = float(worker.get("ADAPTOR_PILOT_END", worker["SLURM_JOB_END_TIME"]))
            self._of_pilot["SLURM_JOB_END_TIME"] = f"{end:.0f}"
        self._copies: dict[int, Path] = {}  # by bag
        self._own: dict[AttemptKey, Path] = {}  # those of attempts whose script is not that of their bag
        self._slots: str | None = None
        """On this node, for the steps of all elements; None: no script of sbatch has come yet."""

    def output_of(self, bag: BagContext) -> OutputFolder | ScriptOutput:
        """What opens the files of a bag's attempts."""
        if bag.script is None:
            return OutputFolder(bag)
        return ScriptOutput(bag.script, self._node, self._scratch_of, self._forget_own)

    def _scratch_of(self, key: AttemptKey) -> str | None:
        """A part of the pilot's folder for temporary files; None: it has none of its own."""
        if self._scratch is None:
            return None
        return f"{self._scratch}/{Element(key.bag, key.task, None).job}.{key.attempt}"

    def copy(self, bag: BagContext, lease: Lease) -> str | None:
        """The file that a task runs; None: its bag has no script. Raises CannotStartError."""
        if bag.script is None:
            return None
        script, key = script_of(bag.script, lease.environment), lease.key
        own = script.body is not bag.script.body
        path = self._own.get(key) if own else self._copies.get(bag.bag)
        if path is None:
            number = Element(key.bag, key.task, None).job if own else bag.bag
            path = self._place(number) / f"{bag.script.dialect}_script"
            self._write(path, script.body)
            if bag.script.dialect == "slurm" and self._slots is None:
                self._slots = self._write_srun()
            if bag.script.dialect == "pbs":
                self._write(path.with_name("nodes"), f"{self._node}\n".encode() * bag.script.processes)
            path.parent.chmod(_READ_ONLY)
            if own:
                self._own[key] = path
            else:
                self._copies[bag.bag] = path
        return str(path)

    def _write_srun(self) -> str:
        """Write what stands in front of Slurm's srun; returns the file that its steps lock."""
        program = self._folder / "bin" / "srun"
        first = f"#!{sys.executable} -IS\n"
        try:
            handle, slots = tempfile.mkstemp(prefix="adaptor-steps-")
            os.close(handle)
            source = Path(__file__).with_name("srun.py").read_bytes()
            self._write(program, first.encode() + source)
            program.with_name(SLOTS).unlink(missing_ok=True)  # of a time when this failed
            program.with_name(SLOTS).symlink_to(slots)
        except OSError as error:
            raise CannotStartError(f"srun cannot be set up: {error.strerror}") from error
        if len(first) > _LONGEST_FIRST or " " in sys.executable:  # loses functions that bash has exported
            program.rename(program.with_name("srun.py"))
            words = shlex.join([sys.executable, "-IS", str(program.with_name("srun.py"))])
            self._write(program, f'#!/bin/sh\nexec {words} "$@"\n'.encode())
        return slots

    def _place(self, number: int) -> Path:
        """The folder of the script of a bag or of an element.

        Scripts tell their copies by its name, which is as in slurmd's spool. Like that folder it takes no
        files: what is written next to `$0` would go with the pilot.
        """
        return self._folder / "slurmd" / f"job{number:05d}"

    def environment(self, given: Mapping[str, str], bag: BagContext, lease: Lease) -> dict[str, str]:
        """What a task of a script finds; of any other bag what was given."""
        script = bag.script
        if script is None:
            return dict(given)
        element = element_of(script, lease.key.bag, lease.key.task, lease.environment)
        path, processors = str(self._folder), (lease.task or bag.task).processors
        told = {**given, **self._of_pilot}
        if script.dialect == "pbs":
            told.update(of_pbs(element, processors))
            told["PBS_NODEFILE"] = str(self._place(bag.bag) / "nodes")
        if script.dialect == "gridengine":
            told.update(of_grid_engine(element, self._node, processors))
        told.update(script.variables)
        if script.dialect == "slurm":
            told.update(of_slurm(element, self._node, processors))
            # A login shell sets PATH again, and modules put folders in front; a function stays.
            told["BASH_FUNC_srun%%"] = f'() {{ {shlex.quote(f"{path}/bin/srun")} "$@"; }}'
            if lease.key.attempt > 1:
                told["SLURM_RESTART_COUNT"] = str(lease.key.attempt - 1)
            if "CUDA_VISIBLE_DEVICES" in given and given.get("ADAPTOR_GPUS"):
                told["SLURM_JOB_GPUS"] = given["ADAPTOR_GPUS"]
                told["SLURM_GPUS_ON_NODE"] = str(len(given["ADAPTOR_GPUS"].split(",")))
        scratch = self._scratch_of(lease.key)
        if scratch is not None:
            told.update({name: scratch for name in _TMPDIRS if given.get(name) == self._scratch})
        told.update(lease.environment or {})
        told.pop(OWN_SCRIPT, None)
        if script.dialect == "slurm":
            told["PATH"] = f"{path}/bin:{given.get('PATH', os.defpath)}"
        return told

    def forget(self, bag: int) -> None:
        path = self._copies.pop(bag, None)
        if path is not None:
            _remove(path.parent)

    def _forget_own(self, key: AttemptKey) -> None:
        path = self._own.pop(key, None)
        if path is not None:
            _remove(path.parent)

    def remove(self) -> None:
        """All of them; the worker leaves."""
        for path in (*self._copies.values(), *self._own.values()):
            _remove(path.parent)
        if self._slots is not None:
            with contextlib.suppress(OSError):
                Path(self._slots).unlink()
        shutil.rmtree(self._folder, ignore_errors=True)

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            write_atomically(path, data, temporary=temporary, mode=_EXECUTABLE)
        except OSError as error:
            raise CannotStartError(f"{path}: the script cannot be copied: {error.strerror}") from error


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.chmod(_EXECUTABLE)
    shutil.rmtree(folder, ignore_errors=True)


def scratch_of(worker: Mapping[str, str]) -> str | None:
    """The folder for temporary files that is the pilot's own, and goes with it; None: there is none.

    It is $SLURM_TMPDIR, which some sites have, or a $TMPDIR with the number of the pilot's job in it, as that
    of PBS and Grid Engine.
    """
    slurm, folder = (worker.get(name) for name in _TMPDIRS)
    ids = (worker.get(name, "").partition(".")[0] for name in _JOB_IDS)
    if slurm or not folder:
        return slurm
    own = any(re.search(rf"(?<!\d){re.escape(each)}(?!\d)", folder) for each in ids if each)
    return folder if own else None


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
    index = "" if element.index is None else f"[{element.index}]"
    told = {
        "ENVIRONMENT": "BATCH",
        "NCPUS": str(processors),
        "OMP_NUM_THREADS": str(processors),
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBDIR": os.path.expanduser("~"),  # noqa: PTH111
        "PBS_JOBID": f"{element.array_job}{index}.adaptor",
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
