"""The daemon's side of a site's spool (`maildir`): removes, writes, sweeps and reads its files.

The folder lies on this machine or, for a site over ssh, on its login node: `Files` reaches both.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from adaptor.protocol import maildir
from adaptor.protocol.files.local import LOCAL_FILES, Files, FilesDone, FilesError, FileWork, NewFile

_MOST_FILES = 1000  # one exchange returns at most these, and some 64 MiB; a single file may be larger

log = logging.getLogger(__name__)


class Spool:
    """Makes its folder, and again if it disappears; makes the parent only at the start.

    Calls block and come one at a time. Each may raise FilesError: it may be done in part, and repeating
    it does no harm.
    """

    def __init__(
        self, folder: Path, files: Files = LOCAL_FILES, say: Callable[[str], None] = log.warning
    ) -> None:
        """`folder`: relative to the home directory on its machine, or absolute."""
        self._folder = folder
        self._files = files
        self._located = False
        self._listing = maildir.Listing(maildir.parse_worker_file, say)

    def locate(self) -> Path:
        """The absolute path of the folder, as its workers see it; made if missing."""
        if not self._located:
            made = self._files.run(FileWork(make=_encoded(self._folder.parent, *self._folders())))
            self._folder = Path(os.fsdecode(made.made[1]))
            self._located = True
        return self._folder

    def run(
        self,
        *,
        remove: list[bytes] = [],  # noqa: B006  (never changed)
        write: list[NewFile] = [],  # noqa: B006
        pilots: Collection[int] | None = None,
        collect: bool = True,
    ) -> tuple[FilesDone, bool]:
        """Do the work on the spool in this order: remove, write, sweep, read.

        Args:
            remove: files of workers that the daemon has taken in.
            pilots: pilots in the system; connections of all others are removed. None: nothing is swept.
            collect: whether to read what workers have written.

        Returns:
            The files that were not written, and all files of workers, sorted by number, earlier calls'
            included; and whether some are left out for the next call.
        """
        self.locate()
        inbox, outbox = maildir.from_workers(self._folder), self._folder / "out"
        folders = _encoded(inbox, *([] if pilots is None else [outbox]))
        done = self._files.run(FileWork(remove=remove, write=write, names=folders, fresh=True))
        names = self._listed(done, inbox)
        if pilots is not None:
            self._sweep(pilots, names, self._listed(done, outbox))
        paths = self._worker_files(names) if collect else []
        if not paths:
            return done, False
        found = maildir.read_files(self._files, paths[:_MOST_FILES])
        return msgspec.structs.replace(done, ends=found.ends), found.read < len(paths)

    def _folders(self) -> tuple[Path, ...]:
        return self._folder, maildir.from_workers(self._folder), self._folder / "out"

    def _listed(self, done: FilesDone, folder: Path) -> list[bytes]:
        found = done.names.get(os.fsencode(folder))
        if found is None:
            parent = self._folder.parent
            if os.fsencode(parent) not in self._files.run(FileWork(names=_encoded(parent))).names:
                raise FilesError(f"{parent}: no such folder; is its file system mounted?")
            self._files.run(FileWork(make=_encoded(*self._folders())))
            raise FilesError(f"{folder}: No such file or directory")
        return found

    def _sweep(self, pilots: Collection[int], files: list[bytes], connections: list[bytes]) -> None:
        """Remove what workers of ended pilots left: their folders, and half-written files."""
        inbox = maildir.from_workers(self._folder)
        left = [
            *(
                (maildir.parse_connection(name), maildir.for_worker(self._folder, name))
                for name in map(os.fsdecode, connections)
            ),
            *((maildir.parse_half_written(name), inbox / name) for name in map(os.fsdecode, files)),
        ]
        if ended := [path for connection, path in left if connection and connection.pilot not in pilots]:
            self._files.run(FileWork(remove=_encoded(*ended)))

    def _worker_files(self, names: list[bytes]) -> list[bytes]:
        """The paths of all worker files, sorted by number."""
        found = self._listing.files(maildir.from_workers(self._folder), names)
        found.sort(key=lambda file: (file[0][1], file[0][0].n, file[1]))
        return [path for _, path in found]


def _encoded(*paths: Path) -> list[bytes]:
    return [os.fsencode(path) for path in paths]
