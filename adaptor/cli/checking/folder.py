"""Check that the file system of the state directory does what the daemon needs, for `adaptor site check`."""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from adaptor.daemon.lock import SILENCE
from adaptor.errors import JournalError
from adaptor.journal.database import open_for_reading, open_for_writing
from adaptor.private_files import write_private
from backends.findings import Finding, error, ok, warning

MOUNTS = Path("/proc/self/mounts")
_LOCAL_LOCKS = frozenset({"nolock", "localflock", "local_lock=all", "local_lock=posix"})
"""Options of mounts whose locks hold on one machine only."""
_TAKE = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def check_folder(directory: Path, mounts: Path = MOUNTS) -> list[Finding]:
    """Findings on the file system of a state directory, good and bad. Writes into a folder in it."""
    kind, options = mount_of(directory, mounts)
    try:
        trial = Path(tempfile.mkdtemp(prefix="check-", dir=directory))
    except OSError as problem:
        return [error(f"{directory}: cannot be written: {problem.strerror}")]
    try:
        found = [error(f"{directory} ({kind}): {text}") for text in _faults(trial)]
    finally:
        shutil.rmtree(trial, ignore_errors=True)
    local = sorted(_LOCAL_LOCKS & options)
    if local or kind.startswith("fuse"):
        how = f"is mounted with {', '.join(local)}" if local else f"is of type {kind}"
        found.append(
            warning(
                f"{directory} {how}: its locks may not reach other machines. Start the daemon on one of them"
                f" only; others know of it by its heartbeat, and take over {SILENCE:.0f} s after the last"
            )
        )
    return found or [ok(f"{directory} ({kind}): locks, renames, times of change and the journal work here")]


def mount_of(path: Path, mounts: Path = MOUNTS) -> tuple[str, frozenset[str]]:
    """The type and the options of the file system that holds a path."""
    place = os.path.realpath(path)
    best, kind, options = "", "unknown", ""
    for line in mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        _, where, type_, opts, *_ = line.split(" ")
        where = where.replace("\\040", " ")
        inside = place == where or place.startswith(where.rstrip("/") + "/")
        if inside and len(where) >= len(best):
            best, kind, options = where, type_, opts
    return kind, frozenset(options.split(","))


def _faults(folder: Path) -> Iterator[str]:
    """Functions that the file system lacks, as messages."""
    lock = folder / "lock"
    try:
        write_private(lock, b"1")
        write_private(lock, b"2")
        if lock.read_bytes() != b"2":
            yield "a file that is replaced by renaming is not seen at once"
        os.utime(lock, (1.0, 1.0))
        if lock.stat().st_mtime != 1.0:
            yield "the time of change of a file cannot be set"
    except OSError as problem:
        yield f"files cannot be written and replaced: {problem.strerror}"
        return
    yield from _lock_faults(lock)
    try:
        with closing(open_for_writing(folder)) as journal:
            journal.execute("INSERT INTO decision (time, site, kind, text) VALUES (0, '', 'problem', '')")
        with closing(open_for_reading(folder)) as journal:
            rows = journal.execute("SELECT COUNT(*) FROM decision").fetchone()[0]
        if rows != 1:
            yield "what was written into a journal is not there when it is opened again"
    except (JournalError, sqlite3.Error) as problem:
        yield f"a journal cannot be kept here: {problem}"


def _lock_faults(lock: Path) -> Iterator[str]:
    with lock.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            yield f"files cannot be locked ({problem.strerror}); Lustre needs the option `flock` for it"
            return
        taken = subprocess.run([sys.executable, "-c", _TAKE, str(lock)], capture_output=True, check=False)
        if taken.returncode == 0:
            yield "a lock does not keep another process of this machine away"
