"""What both kinds of `Machine` do with files."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from adaptor.protocol.files.local import Files, FilesDone, FilesError, FileWork, NewFile
from backends.base import SchedulerError

log = logging.getLogger(__name__)


class WithFiles:
    """See `backends.machines.base.Machine`. All of its files are private."""

    where: str

    def __init__(self, files: Files) -> None:
        self.files = files

    def private_folder(self, path: Path) -> Path:
        return Path(os.fsdecode(self._do(FileWork(make=[os.fsencode(path)])).made[0]))

    def write_private(self, path: Path, data: bytes) -> None:
        done = self._do(FileWork(write=[NewFile(os.fsencode(path), data, sync=True)]))
        if done.homeless:
            raise SchedulerError(f"{path}: cannot be written {self.where}: its folder is not there")

    def read_files(self, folder: Path, patterns: Sequence[str], most: int) -> dict[str, bytes]:
        chosen = [
            os.fsencode(folder / name)
            for name in self.names(folder)
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        ]
        found: dict[str, bytes] = {}
        while chosen:
            done = self._do(FileWork(read=chosen, most=most))
            chosen = chosen[done.read :]
            for end in done.ends:
                if end.problem:
                    log.warning("left out %s: %s", self.where, end.problem)
                else:
                    found[Path(os.fsdecode(end.path)).name] = end.data
        return found

    def names(self, folder: Path) -> list[str]:
        found = self._do(FileWork(names=[os.fsencode(folder)])).names.values()
        return sorted(os.fsdecode(name) for names in found for name in names)

    def remove(self, paths: Collection[Path]) -> None:
        self._do(FileWork(remove=[os.fsencode(path) for path in paths]))

    def _do(self, work: FileWork) -> FilesDone:
        try:
            return self.files.run(work)
        except FilesError as error:
            raise SchedulerError(f"{self.where}: {error}") from error
