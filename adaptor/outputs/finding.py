"""Finds the outputs of tasks in a bag's output folder, in files of their own or in workers' archives.

The folder is listed once; nothing asks for each file, which on a network file system takes long.
"""

from __future__ import annotations

import math
import os
import subprocess
from pathlib import Path
from typing import BinaryIO

import msgspec

from adaptor.outputs.packing import ARCHIVE, INDEX, PACK, Stream, output_name
from adaptor.private_files import open_folder, open_ours

_PATIENCE = 10.0  # seconds for a command
_LARGEST_INDEX = 1 << 30  # bytes


class OutputPlace(msgspec.Struct, frozen=True):
    """Place of an output."""

    path: str  # of its file, or of the archive that holds it
    start: int = 0
    size: int | None = None  # bytes; None: all of the file


class Outputs:
    """The outputs of one bag. The folder is listed when the first one is looked for, and by `refresh`."""

    def __init__(self, folder: str, *, packed: bool = True, kept: bool = True) -> None:
        """`packed`: whether there may be archives; `kept`: whether output was kept at all."""
        self.folder = folder
        self._may_be_packed = packed
        self._kept = kept
        self._files: set[str] | None = None
        self._packed: dict[str, OutputPlace] = {}

    def refresh(self) -> None:
        try:
            names = os.listdir(self.folder)  # noqa: PTH208 (there may be 100,000)
        except OSError:
            names = []
        # The files first: what is packed meanwhile is in an index by the time it is no file any more.
        self._files = set(names)
        self._packed = {}
        for name in names:
            if name.startswith(PACK) and name.endswith(INDEX):
                self._packed.update(_members(Path(self.folder, name)))

    def made_at(self) -> float | None:
        """Epoch seconds at which the folder was made; infinite: it is not there; None: unknown.

        Python has no call for it; some file systems do not know it.
        """
        if not self._kept:
            return None
        if not os.path.lexists(self.folder):
            return math.inf
        try:
            told = subprocess.run(
                ["stat", "-c", "%W", "--", self.folder], capture_output=True, text=True, timeout=_PATIENCE
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return float(told.stdout) or None if told.stdout.strip().isdecimal() else None

    def find(self, task: int, attempt: int, stream: Stream, named: str | None = None) -> OutputPlace | None:
        """Place of an attempt's output; None: the attempt has written nothing, or nothing of it is left.

        `named`: the file of the output, if a batch script names it.
        """
        if named is not None:
            return OutputPlace(named) if named != os.devnull and os.path.lexists(named) else None
        if self._files is None:
            self.refresh()
        name = output_name(task, attempt, stream)
        packed = self._packed.get(name)
        if packed is not None:
            return packed
        return self._own(name) if name in (self._files or ()) else None

    def find_one(
        self, task: int, attempt: int, stream: Stream, named: str | None = None
    ) -> OutputPlace | None:
        """Place of the output of one or a few tasks: no folder is listed if the output is a file of its
        own."""
        if named is not None:
            return self.find(task, attempt, stream, named)
        own = self._own(output_name(task, attempt, stream))
        if os.path.lexists(own.path):
            return own
        return self.find(task, attempt, stream) if self._may_be_packed else None

    def _own(self, name: str) -> OutputPlace:
        return OutputPlace(os.path.join(self.folder, name))  # noqa: PTH118 (there may be 100,000)


def open_place(place: OutputPlace) -> BinaryIO:
    """Open an output at its first byte, as its worker has opened it: a plain file of this user, and no link.

    A link to its folder may be this user's or root's. A fifo that was put in its place is not waited for.

    Raises OSError: it is not there, cannot be read, or is not ours; `strerror` says why.
    """
    folder, name = os.path.split(os.path.abspath(place.path))  # noqa: PTH100 (as the paths of folders here)
    above = open_folder(folder, ours=False)
    try:
        handle = open_ours(name, folder=above)
    finally:
        os.close(above)
    file = os.fdopen(handle, "rb")
    file.seek(place.start)
    return file


def _members(index: Path) -> dict[str, OutputPlace]:
    """Outputs in an archive, by name; a last line of the index that is cut off does not count."""
    try:
        with open_place(OutputPlace(str(index))) as file:
            lines = file.read(_LARGEST_INDEX).split(b"\n")[:-1]
    except OSError:
        return {}
    archive = str(index.with_name(index.name.removesuffix(INDEX) + ARCHIVE))
    found = {}
    for line in lines:
        words = line.decode("ascii", "replace").split(" ")
        if len(words) == 3 and words[0].isdecimal() and words[1].isdecimal():
            found[words[2]] = OutputPlace(archive, int(words[0]), int(words[1]))
    return found


_BYTES = 8192
_WIDTH = 400  # characters of a line


def tail(place: OutputPlace | None, lines: int = 20) -> str:
    """The last lines; empty where there is no such plain file of ours, or nothing in it."""
    if place is None:
        return ""
    try:
        with open_place(place) as file:
            size = os.fstat(file.fileno()).st_size if place.size is None else place.size
            file.seek(place.start + max(0, size - _BYTES))
            text = file.read(min(size, _BYTES)).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(
        "".join(each if each.isprintable() or each == "\t" else "\N{MIDDLE DOT}" for each in line[:_WIDTH])
        for line in text.splitlines()[-lines:]
    ).strip("\n")
