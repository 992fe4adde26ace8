"""Interface to the machine where a site's scheduler answers, for backends and the daemon."""

from __future__ import annotations

import abc
import logging
import os
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from adaptor.processes.talk import Talk
from adaptor.protocol.files.local import Files, FilesDone, FilesError, FileWork, NewFile
from backends.base import SchedulerError


class CommandAnswer(msgspec.Struct, frozen=True):
    """Output of a command, and its exit status."""

    status: int
    printed: bytes
    """Standard output. As text it may need four times the memory: one name of a job is enough for that."""
    errors: str

    @property
    def output(self) -> str:
        """Standard output as text."""
        return self.printed.decode(errors="replace")

    @property
    def complaint(self) -> str:
        """The first lines of standard error for a message, or of the output where there is none."""
        lines = (self.errors.strip() or self.output.strip() or "no message").splitlines()
        return "; ".join(line.strip() for line in lines[:3] if line.strip())


class CommandHung(SchedulerError):
    """A command was given up before it had answered: what it has brought about is not known."""


log = logging.getLogger(__name__)


class Machine(abc.ABC):
    """The machine on which a site's commands run and its pilots' files lie; all of these are private.

    All calls block, and may come from several threads. Every method may raise SchedulerError: the
    machine is not reached, or what was asked for failed there.
    """

    where: str  # for messages: `here`, `on login.example.org`

    def __init__(self, files: Files) -> None:
        self.files = files

    @abc.abstractmethod
    def variables(self) -> dict[str, str]:
        """The environment of a user's commands there, with the site's own additions."""

    @abc.abstractmethod
    def run(self, arguments: Sequence[str], variables: Mapping[str, str], timeout: float) -> CommandAnswer:
        """The answer of a command that sees exactly these variables and no input.

        Raises:
            CommandHung: it took longer than `timeout` seconds and was killed with its children, or the
                connection was lost while it ran.
            SchedulerError: it was certainly not started.
        """

    @abc.abstractmethod
    def start(self, arguments: Sequence[str]) -> Talk:
        """A process that lives until its input is closed."""

    @abc.abstractmethod
    def close(self) -> None:
        """Leave it, until it is asked something again."""

    def private_folder(self, path: Path) -> Path:
        """The absolute path of a folder of mode 0700 that is ours alone; made if missing."""
        return Path(os.fsdecode(self._do(FileWork(make=[os.fsencode(path)])).made[0]))

    def write_private(self, path: Path, data: bytes) -> None:
        """Write a 0600 file in one step: a reader sees the old content or the new, never a part."""
        done = self._do(FileWork(write=[NewFile(os.fsencode(path), data, sync=True)]))
        if done.homeless:
            raise SchedulerError(f"{path}: cannot be written {self.where}: its folder is not there")

    def read_files(self, folder: Path, patterns: Sequence[str], most: int) -> dict[str, bytes]:
        """The files of a folder whose names match, by name; of a large one its last `most` bytes.

        What cannot be read is left out; empty where there is no such folder.
        """
        return self.read_folders([folder], patterns, most)[folder]

    def read_folders(
        self, folders: Sequence[Path], patterns: Sequence[str], most: int
    ) -> dict[Path, dict[str, bytes]]:
        """Read the files that match in several folders, by folder, with as few questions as for one
        folder."""
        listed = self._do(FileWork(names=[os.fsencode(folder) for folder in folders])).names
        chosen = [
            os.fsencode(folder / name)
            for folder in folders
            for name in sorted(map(os.fsdecode, listed.get(os.fsencode(folder), ())))
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        ]
        found: dict[Path, dict[str, bytes]] = {folder: {} for folder in folders}
        while chosen:
            done = self._do(FileWork(read=chosen, most=most))
            chosen = chosen[done.read :]
            for end in done.ends:
                if end.problem:
                    log.warning("left out %s: %s", self.where, end.problem)
                else:
                    path = Path(os.fsdecode(end.path))
                    found[path.parent][path.name] = end.data
        return found

    def names(self, folder: Path) -> list[str]:
        """Names of the entries of a folder; empty if there is no folder."""
        found = self._do(FileWork(names=[os.fsencode(folder)])).names.values()
        return sorted(os.fsdecode(name) for names in found for name in names)

    def remove(self, paths: Collection[Path]) -> None:
        """Remove files, and folders with all that is in them; what is not there is no error."""
        self._do(FileWork(remove=[os.fsencode(path) for path in paths]))

    def _do(self, work: FileWork) -> FilesDone:
        try:
            return self.files.run(work)
        except FilesError as error:
            raise SchedulerError(self._located(str(error))) from error

    def _located(self, problem: str) -> str:
        """The words for a problem with files, with the machine where it is not this one."""
        return problem
