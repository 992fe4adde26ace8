"""A mailbox in a folder that this machine sees: the daemon's errands as file operations."""

from __future__ import annotations

from pathlib import Path

from adaptor.errors import AdaptorError
from adaptor.protocol.spool.exchange import Errand, Letter, MailRoomError, Outcome, Post
from adaptor.protocol.spool.files import (
    NotOursError,
    names_in,
    read_file,
    remove_file,
    remove_folder,
    write_file,
)
from adaptor.protocol.spool.layout import Box, inbox, outbox, parse_box, parse_letter
from adaptor.protocol.state_directory import private_directory

_MOST_LETTERS = 1000
_MOST_BYTES = 64 * 1024 * 1024
"""What one errand brings back, at most; a single letter may be larger."""


class DirectoryRoom:
    """See `MailRoom`. The folder is made, and made anew should it disappear; its parent only at first."""

    def __init__(self, room: Path) -> None:
        """Raises MailRoomError: folder or parent cannot be made, is not ours, or is open to others."""
        self._room = room
        self._strange: set[str] = set()
        """Names that were remarked on."""
        _make_private(room.parent)
        self._prepare()

    def locate(self) -> Path:
        return self._room

    def run(self, errand: Errand) -> Outcome:
        try:
            return self._run(errand)
        except OSError as error:
            self._prepare()
            raise MailRoomError(f"{self._room}: {error.strerror or error}") from error

    def close(self) -> None:
        """There is nothing to let go of."""

    def _prepare(self) -> None:
        if not self._room.parent.is_dir():
            raise MailRoomError(f"{self._room.parent}: no such folder; is its file system mounted?")
        for folder in (self._room, inbox(self._room), self._room / "out"):
            _make_private(folder)

    def _run(self, errand: Errand) -> Outcome:
        for name in errand.done:
            if parse_letter(name):
                remove_file(inbox(self._room) / name)
        gone = {post.box for post in errand.posts if not self._put(post)}
        if errand.pilots is not None:
            self._sweep(frozenset(errand.pilots))
        if not errand.collect:
            return Outcome(gone=sorted(gone))
        return self._collect(gone)

    def _put(self, post: Post) -> bool:
        """Whether the worker's folder is there."""
        folder = outbox(self._room, post.box)
        if not parse_box(post.box) or not folder.is_dir():
            return False
        try:
            write_file(folder / post.name, post.data)
        except FileNotFoundError:  # it has left at this moment
            return False
        return True

    def _sweep(self, pilots: frozenset[int]) -> None:
        """Remove what workers of other pilots have left: their folders, and files half written."""
        out = self._room / "out"
        for name in names_in(out):
            box = parse_box(name)
            if box and box.pilot not in pilots:
                remove_folder(out / name)
        for name in names_in(inbox(self._room)):
            found = parse_letter(name[1:]) if name.startswith(".") else None
            if found and found[0].pilot not in pilots:
                remove_file(inbox(self._room) / name)

    def _collect(self, gone: set[str]) -> Outcome:
        letters: list[Letter] = []
        remarks: list[str] = []
        size = 0
        names = self._letters(remarks)
        for name in names[:_MOST_LETTERS]:
            letter = self._read(name, remarks)
            if letter is not None:
                letters.append(letter)
                size += len(letter.data)
            if size >= _MOST_BYTES:
                break
        more = len(names) > _MOST_LETTERS or size >= _MOST_BYTES
        return Outcome(letters=letters, more=more, gone=sorted(gone), remarks=remarks)

    def _letters(self, remarks: list[str]) -> list[str]:
        """Names of workers' files: the lowest numbers of all boxes first."""
        found: list[tuple[int, int, str]] = []
        strange: set[str] = set()
        for name in names_in(inbox(self._room)):
            parsed: tuple[Box, int] | None = parse_letter(name)
            if parsed is not None:
                found.append((parsed[1], parsed[0].n, name))
            elif not name.startswith("."):
                strange.add(name)
        remarks += [
            f"{inbox(self._room)}: {name!r} is not ours: left alone" for name in strange - self._strange
        ]
        self._strange = strange
        return [name for _, _, name in sorted(found)]

    def _read(self, name: str, remarks: list[str]) -> Letter | None:
        path = inbox(self._room) / name
        try:
            data = read_file(path)
        except NotOursError as error:
            remarks.append(f"{error}: removed")
            self._remove_strange(path)
            return None
        return Letter(name, data) if data is not None else None

    def _remove_strange(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            remove_folder(path)
        else:
            remove_file(path)


def _make_private(folder: Path) -> None:
    try:
        private_directory(folder)
    except AdaptorError as error:
        raise MailRoomError(str(error)) from error
