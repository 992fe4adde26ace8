"""The copies of batch scripts on this node, and their folders for temporary files."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

from adaptor.batch_script import job_number, script_of
from adaptor.protocol.messages import AttemptKey, BagContext, Lease
from adaptor.worker.jobs.commands import EXECUTABLE, write_executable
from adaptor.worker.output import CannotStartError, OutputFolder, ScriptOutput, remove_folder

_READ_ONLY = 0o500
_TMPDIRS = ("SLURM_TMPDIR", "TMPDIR")
_JOB_IDS = ("SLURM_JOB_ID", "PBS_JOBID", "JOB_ID")


class Scripts:
    """The copies lie in a folder for this node (0700) among the files of the pilot."""

    def __init__(self, folder: Path, node: str, worker: Mapping[str, str]) -> None:
        """`folder`: for files of this node. `worker`: the worker's own environment."""
        self._folder = folder
        self._scratch = scratch_of(worker)
        self._node = node
        self._copies: dict[int, Path] = {}  # by bag
        self._own: dict[AttemptKey, Path] = {}  # scripts of attempts whose script is not that of their bag

    def output_of(self, bag: BagContext) -> OutputFolder | ScriptOutput:
        """A function that opens the files of a bag's attempts."""
        if bag.script is None:
            return OutputFolder(bag)
        return ScriptOutput(bag.script, self._node, self._scratch_of, self._forget_own)

    def _scratch_of(self, key: AttemptKey) -> str | None:
        """A part of the pilot's folder for temporary files; None: it has none of its own."""
        if self._scratch is None:
            return None
        return f"{self._scratch}/{job_number(key.bag, key.task)}.{key.attempt}"

    def copy(self, bag: BagContext, lease: Lease) -> str | None:
        """The file that a task runs; None: its bag has no script. Raises CannotStartError."""
        if bag.script is None:
            return None
        script, key = script_of(bag.script, lease.environment), lease.key
        own = script.body is not bag.script.body
        path = self._own.get(key) if own else self._copies.get(bag.bag)
        if path is None:
            number = job_number(key.bag, key.task) if own else bag.bag
            path = self._place(number) / f"{bag.script.dialect}_script"
            self._write(path, script.body)
            path.parent.chmod(_READ_ONLY)
            if own:
                self._own[key] = path
            else:
                self._copies[bag.bag] = path
        return str(path)

    def _place(self, number: int) -> Path:
        """The folder of the script of a bag or of an element.

        Scripts tell their copies by its name, which is as in slurmd's spool. Like that folder it takes no
        files: what is written next to `$0` would go with the pilot.
        """
        return self._folder / "slurmd" / f"job{number:05d}"

    def with_scratch(self, given: dict[str, str], bag: BagContext, lease: Lease) -> dict[str, str]:
        """The variables of a task; those of a script name a private folder for temporary files."""
        scratch = self._scratch_of(lease.key) if bag.script is not None else None
        if scratch is None:
            return given
        return {**given, **{name: scratch for name in _TMPDIRS if given.get(name) == self._scratch}}

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

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        try:
            write_executable(path, data)
        except OSError as error:
            raise CannotStartError(f"{path}: the script cannot be copied: {error.strerror}") from error


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.chmod(EXECUTABLE)
    remove_folder(folder)


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
