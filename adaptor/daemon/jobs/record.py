"""The record of the daemon's jobs, in its state directory: one small file, read by all that start or end
daemons.

The jobs have numbers, from 1 on. The one that started last writes its number, `current`, and all others
end: the daemon of each, and one that was started by hand. So one daemon stays, whatever the scheduler starts,
in whatever order. The lock of the state directory keeps two of them apart meanwhile.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from adaptor.daemon.clock import system_clock
from adaptor.daemon.lock import LOCK
from adaptor.errors import AdaptorError, UsageError, os_problem
from adaptor.file_format import newer
from adaptor.private_files import open_ours, write_private
from adaptor.protocol.decoding import decoded
from backends.base import DAEMON_TAG

FILE = "daemon-job.json"
FOLDERS = "daemon-jobs"
"""Folder in the state directory with a folder for each job, with its script and its log."""
JOB_VARIABLE = "ADAPTOR_DAEMON_JOB"
"""Variable in a daemon's environment that names the job that runs it."""
FORMAT = 1
_LARGEST = 65536  # bytes


class DaemonJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one `adaptor daemon submit`."""

    series: str  # never used again
    site: str
    partition: str = ""  # by its name at the site; empty: as the site has it
    walltime: int  # seconds of each job
    memory: int  # bytes
    config: str = ""  # the configuration that was named; empty: none
    environment: dict[str, str] = {}
    """Variables with which the scheduler's commands are found; a job may get none by itself."""
    current: int = 0  # the number of the job whose daemon runs, or ran last; 0: none has started
    current_job: str = ""  # its id; empty: not known yet
    host: str = ""  # of the current job
    until: float = 0.0  # epoch seconds by which it has to end; 0: not known
    submitted: int = 0  # the highest number of a job that was submitted
    next_job: str = ""  # the id of the job that follows; empty: none is known
    format: int = FORMAT

    @property
    def tag_start(self) -> str:
        """Common prefix of the tags of all its jobs."""
        return f"{DAEMON_TAG}{self.series}."

    def tag(self, number: int) -> str:
        return f"{self.tag_start}{number}"

    def number_of(self, tag: str) -> int:
        """The number of the job with this tag; 0: it is none of these."""
        rest = tag.removeprefix(self.tag_start)
        return int(rest) if rest != tag and rest.isascii() and rest.isdigit() else 0

    def name(self, number: int) -> str:
        """Value of `JOB_VARIABLE` in the job of this number."""
        return f"{self.series}.{number}"

    def folder(self, directory: Path, number: int) -> Path:
        return directory / FOLDERS / f"{self.series}.{number}"


_record = msgspec.json.Decoder(DaemonJobs)


def read_jobs(directory: Path) -> DaemonJobs | None:
    """The record of a state directory; None: its daemon runs as no job.

    Raises AdaptorError: the record cannot be read.
    """
    path = directory / FILE
    try:
        with os.fdopen(open_ours(path, links=False, closed=True), "rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be read: {error.strerror}") from error
    if problem := newer(data, FORMAT):
        raise AdaptorError(f"{path}: {problem}")
    try:
        return decoded(_record.decode, data)
    except msgspec.DecodeError as error:
        raise AdaptorError(f"{path}: damaged ({error}): remove it with: adaptor daemon stop") from error


def write_jobs(directory: Path, jobs: DaemonJobs) -> None:
    """Write the record of the jobs. Raises AdaptorError."""
    try:
        write_private(directory / FILE, msgspec.json.encode(jobs))
    except OSError as error:
        raise AdaptorError(f"the job of the daemon cannot be noted: {os_problem(error)}") from error


def forget_jobs(directory: Path) -> None:
    """Record that no job runs the daemon; jobs that do so end by themselves. Raises AdaptorError."""
    try:
        (directory / FILE).unlink(missing_ok=True)
    except OSError as error:
        raise AdaptorError(f"{os_problem(error)}: cannot be removed") from error


def claim(directory: Path, series: str, number: int, *, job: str, host: str, until: float) -> str:
    """Become the current job; why not, or empty.

    Of two that do so at once the last one stays: the other one finds its number replaced (`replaced`).

    Raises AdaptorError: the record cannot be read or written.
    """
    jobs = read_jobs(directory)
    if jobs is None or jobs.series != series:
        return (
            f"{directory / FILE} does not name this job: the daemon was stopped or submitted again, or this"
            f" node, {host}, has another folder of this name than the machine that submitted the job"
        )
    if jobs.current >= number:
        return f"job {jobs.current} runs the daemon already; this is job {number}"
    following = jobs.next_job if jobs.next_job != job else ""
    changed = msgspec.structs.replace(
        jobs, current=number, current_job=job, host=host, until=until, next_job=following
    )
    write_jobs(directory, msgspec.structs.replace(changed, submitted=max(jobs.submitted, number)))
    return ""


def replaced(directory: Path, own: str) -> str:
    """Why a daemon has to leave the state directory to another one; empty: it need not.

    A record that cannot be read says nothing.

    Args:
        own: what `JOB_VARIABLE` says of this daemon; empty: it runs in no job.
    """
    with contextlib.suppress(AdaptorError):
        jobs = read_jobs(directory)
        if jobs is None:
            return "the daemon was stopped, or is to run as no job" if own else ""
        if jobs.current and jobs.name(jobs.current) != own:
            return f"the daemon continues in job {jobs.current_job or jobs.current} on {jobs.host}"
    return ""


def following(jobs: DaemonJobs) -> str:
    """A sentence for messages about the job that runs the daemon next."""
    if jobs.next_job:
        return f"job {jobs.next_job} at {jobs.site} runs the next one when the scheduler starts it"
    return f"the next job at {jobs.site} is not known yet"


HAND_OVER = 5.0  # seconds that a job may take from the end of the daemon before it to its own


def hands_over(directory: Path) -> bool:
    """Whether the daemon of a job has ended just now, so that the next one is about to answer."""
    with contextlib.suppress(AdaptorError, OSError):
        return read_jobs(directory) is not None and (
            system_clock() - (directory / LOCK).stat().st_mtime < HAND_OVER
        )
    return False


def check_no_job(directory: Path, what: str) -> None:
    """Raises UsageError: a job runs the daemon, so that no other one may be started here."""
    jobs = read_jobs(directory)
    if jobs is not None:
        raise UsageError(
            f"the daemon of {directory} runs as a job at {jobs.site}, so this command does not {what}:"
            f" {following(jobs)}. To have it on this machine: adaptor daemon stop, then adaptor daemon start"
        )
