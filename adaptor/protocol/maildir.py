"""Messages as files in a folder that daemon and workers share, where no socket is possible.

    <spool>/in/<connection>.<number>           from workers: one folder, so that one look finds everything
    <spool>/out/<connection>/<run>.<number>    for one worker, which makes and removes the folder

A **connection** is one attempt of a worker to reach the daemon, `<pilot>-<token>-<n>`: the worker draws
the token once and counts its connections with n. A **run** is one run of the daemon. A writer numbers its
files from 1 for each connection (and run): no name occurs twice, so no cached listing can mislead.

A file is written under another name and renamed. The reader sorts each writer's numbers, takes those after
the last one that it has taken, and removes what it has taken and what is older. So the order is kept, and
no file is taken twice; one that a file server shows after its successor is lost, and the protocol above
repeats what it said.

Made for NFS as it is usually mounted: a listing may be out of date by the run of an attribute cache
(30 s and more), no other machine's clock is asked, a file may vanish between listing and opening
(ESTALE), and a rename whose answer was lost may be reported as failed although it was done.

A file is 32 bytes of HMAC-SHA-256 over its path in the spool and its content, then the content. The
key derives from the workers' secret key, which the daemon has from its keys and the workers from their
access file: a torn file, a file of another daemon and a file copied to another path do not verify.

The content is not encrypted: workers read their key from an access file in the same kind of shared
folder, so who can read the spool in spite of its modes (0700, 0600) can read that key as well.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from adaptor.errors import AdaptorError
from adaptor.protocol.decoding import decoded
from adaptor.protocol.files.local import FileEnd, Files, FilesDone, FilesError, FileWork, NewFile

_SIZE = hashlib.sha256().digest_size


class SealError(AdaptorError):
    """A file is torn, or neither our daemon nor its workers wrote it to this path."""


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """The content of one file: several messages, in order."""

    worker: str
    messages: list[bytes]


_decoder = msgspec.msgpack.Decoder(Envelope)
_encode = msgspec.msgpack.Encoder().encode


class Seal:
    def __init__(self, secret: str) -> None:
        """`secret`: the workers' secret key."""
        self._key = hmac.digest(secret.encode(), b"request adaptor spool 1", "sha256")

    def close(self, path: str, envelope: Envelope) -> bytes:
        """The file's bytes. `path`: its path in the spool, such as `in/7-0123abcd-1.00000001`."""
        content = _encode(envelope)
        return self._seal(path, content) + content

    def open(self, path: str, data: bytes) -> Envelope:
        """The envelope in a file. Raises SealError: the file is torn, or not ours."""
        content = data[_SIZE:]
        if not hmac.compare_digest(data[:_SIZE], self._seal(path, content)):
            raise SealError(f"{path}: incomplete, or sealed with another key")
        try:
            return decoded(_decoder.decode, content)
        except msgspec.DecodeError as error:  # another version wrote it
            raise SealError(f"{path}: cannot be decoded: {error}") from error

    def _seal(self, path: str, content: bytes) -> bytes:
        seal = hmac.new(self._key, path.encode() + b"\0", "sha256")
        seal.update(content)
        return seal.digest()


T = TypeVar("T")

SCHEME = "spool://"
LATENCY = 5.0  # seconds that a message usually takes, at most, from one side to the other
LARGEST = 65 * 1024 * 1024  # bytes of a file, at most; neither side writes a larger one
TARGET = 1024 * 1024  # bytes after which a file is full; one message may be larger
MEMORY = 128 * 1024 * 1024  # bytes of the messages that wait in memory, at most
UNREAD = 8  # files of one writer that may lie unread; further messages wait in memory
QUICKEST = 0.1  # seconds between two looks, and between two files of one writer
SLOWEST = 2.0
_GROWTH = 1.5

_CONNECTION = r"(?P<connection>(?P<pilot>\d{1,18})-(?P<token>[0-9a-f]{8})-(?P<n>\d{1,9}))"
_WORKER_FILE = re.compile(_CONNECTION + r"\.(?P<number>\d{8,12})", re.ASCII)
_CONNECTION_ALONE = re.compile(_CONNECTION, re.ASCII)
_HALF_WRITTEN = re.compile(r"\." + _CONNECTION + r"\.\d[\d.]*", re.ASCII)
_DAEMON_FILE = re.compile(r"(?P<run>[0-9a-f]{8})\.(?P<number>\d{8,12})", re.ASCII)


class SpoolConnection(msgspec.Struct, frozen=True):
    """One connection of one worker."""

    pilot: int
    token: str
    n: int  # number of connections that the worker has opened, this one included

    @property
    def name(self) -> str:
        return f"{self.pilot}-{self.token}-{self.n}"


def address_of(spool: Path) -> str:
    """The address of a spool in an access file."""
    return f"{SCHEME}{spool}"


def folder_at(address: str) -> Path:
    """The folder of a spool's address. Raises ValueError: this is no such address."""
    path = Path(address.removeprefix(SCHEME))
    if not address.startswith(SCHEME) or not path.is_absolute():
        raise ValueError(f"{address}: not {SCHEME}/an/absolute/folder")
    return path


def from_workers(spool: Path) -> Path:
    """The folder into which all workers write."""
    return spool / "in"


def for_worker(spool: Path, connection: str) -> Path:
    """The folder into which the daemon writes for one connection of a worker."""
    return spool / "out" / connection


def file_name(writer: str, number: int) -> str:
    """Name of a file of messages. `writer`: a worker's connection, or a run of the daemon."""
    return f"{writer}.{number:08d}"


def parse_worker_file(name: str) -> tuple[SpoolConnection, int] | None:
    """Connection and number of a file from a worker; None for any other name."""
    match = _WORKER_FILE.fullmatch(name)
    return (_connection(match), int(match["number"])) if match else None


def parse_daemon_file(name: str) -> tuple[str, int] | None:
    """The daemon's run and number of a file for a worker; None for any other name."""
    match = _DAEMON_FILE.fullmatch(name)
    return (match["run"], int(match["number"])) if match else None


def parse_connection(name: str) -> SpoolConnection | None:
    match = _CONNECTION_ALONE.fullmatch(name)
    return _connection(match) if match else None


def parse_half_written(name: str) -> SpoolConnection | None:
    """The connection whose worker is writing this file, or was; None for any other name."""
    match = _HALF_WRITTEN.fullmatch(name)
    return _connection(match) if match else None


def _connection(match: re.Match[str]) -> SpoolConnection:
    return SpoolConnection(int(match["pilot"]), match["token"], int(match["n"]))


def read_files(files: Files, paths: list[bytes]) -> FilesDone:
    """The contents of these files, or of the first of them. Raises FilesError: one cannot be read now."""
    done = files.run(FileWork(read=paths, most=LARGEST, whole=True))
    for end in done.ends:
        if end.problem and not end.foreign:
            raise FilesError(end.problem)
    return done


def opened(end: FileEnd, spool: Path, seal: Seal, say: Callable[[str], None]) -> Envelope | None:
    """The message of the other side; None, with a word why: the other side cannot have written this."""
    path = path_of(end)
    why = f"{path}: {end.size} bytes; ours have at most {LARGEST}" if end.size > LARGEST else end.problem
    if not why:
        try:
            return seal.open(str(path.relative_to(spool)), end.data)
        except SealError as error:
            why = str(error)
    say(f"ignored and removed: {why}")
    return None


def path_of(end: FileEnd) -> Path:
    return Path(os.fsdecode(end.path))


class Listing(Generic[T]):
    """The other side's files in a folder; of anything else there one word is said, and it is left alone."""

    def __init__(self, parse: Callable[[str], T | None], say: Callable[[str], None]) -> None:
        self._parse = parse
        self._say = say
        self._strange: set[str] = set()

    def files(self, folder: Path, names: list[bytes]) -> list[tuple[T, bytes]]:
        """And their paths. `names`: all that are in the folder."""
        found: list[tuple[T, bytes]] = []
        strange: set[str] = set()
        for name in map(os.fsdecode, names):
            parsed = self._parse(name)
            if parsed is not None:
                found.append((parsed, os.fsencode(folder / name)))
            elif not name.startswith("."):
                strange.add(name)
        for name in strange - self._strange:
            self._say(f"{folder}: {name!r} is not ours: left alone")
        self._strange = strange
        return found


class Outgoing:
    """The messages of one writer to one reader: what waits goes into the next file. Pure.

    A file may be written again without harm. No fsync: the sender repeats what a crash of the machine loses.
    """

    def __init__(self, spool: Path, folder: Path, writer: str, seal: Seal) -> None:
        """`writer`: a worker's connection, or a run of the daemon."""
        self._spool = spool
        self._folder = folder
        self._writer = writer
        self._seal = seal
        self.written = 0  # the number of the last file in place
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._next: list[bytes] = []  # the messages of the next file, as long as it is not in place

    def add(self, message: bytes) -> bool:
        """Returns False if the memory for waiting messages is full."""
        if self._bytes + len(message) > MEMORY:
            return False
        self._waiting.append(message)
        self._bytes += len(message)
        return True

    def path(self, number: int) -> bytes:
        return os.fsencode(self._folder / file_name(self._writer, number))

    def next_file(self, worker: str) -> NewFile | None:
        """File `written + 1`, if one is due; not to be written while `UNREAD` files before it lie there."""
        messages = self.due()
        if not messages:
            return None
        number = self.written + 1
        path = self.path(number)
        sealed_as = str(Path(os.fsdecode(path)).relative_to(self._spool))
        data = self._seal.close(sealed_as, Envelope(worker, messages))
        return NewFile(path, data, self.path(number - UNREAD) if number > UNREAD else b"")

    def due(self) -> list[bytes]:
        """The messages of file `written + 1`, the same until `done` is called; none: nothing waits."""
        if not self._next:
            size = count = 0
            while count < len(self._waiting) and (count == 0 or size + len(self._waiting[count]) <= TARGET):
                size += len(self._waiting[count])
                count += 1
            self._next, self._waiting = self._waiting[:count], self._waiting[count:]
            self._bytes -= size
        return self._next

    def done(self) -> None:
        """The file that was due is in place."""
        self._next = []
        self.written += 1


class LookPace:
    """The pause between two looks, seconds: short while messages pass, longer while none does. Pure."""

    def __init__(self, slowest: float = SLOWEST) -> None:
        self.slowest = slowest
        self.pause = QUICKEST

    def speed_up(self) -> None:
        """The last look found something, or an answer is expected."""
        self.pause = QUICKEST

    def slow_down(self) -> None:
        """The last look found nothing."""
        self.pause = min(self.slowest, self.pause * _GROWTH)
