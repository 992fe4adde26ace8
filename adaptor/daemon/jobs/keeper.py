"""`python -m adaptor.daemon.jobs.keeper`: what a job of the daemon runs on its node.

It starts the daemon, and again whenever it has ended. It keeps two jobs in the queue: one that starts when
this job has ended, however it ends, and towards the end of its time one that may start at once. The one that
starts first continues: it becomes the current job of the record, and the daemon here ends.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from adaptor.backoff import Backoff
from adaptor.config.loading import config_path, load_config
from adaptor.daemon.clock import system_clock
from adaptor.daemon.jobs.queue import DaemonJobQueue, remove_old_folders
from adaptor.daemon.jobs.record import JOB_VARIABLE, DaemonJobs, claim, read_jobs, replaced, write_jobs
from adaptor.daemon.jobs.timing import lead, looks_apart, pad
from adaptor.errors import AdaptorError
from adaptor.processes.commands import module_command
from adaptor.processes.identity import host

log = logging.getLogger(__name__)

LOOK = 0.5  # seconds between two looks at the record and at the daemon
_GRACE = 20.0  # seconds for a daemon to end after SIGTERM
_RESTARTED = 0.2, 30.0  # seconds from the end of a daemon to the next one: the first pause, and the longest
_STEADY = 60.0  # seconds after which a daemon has started well
_AGAIN = 15.0, 1800.0  # seconds until a job is submitted again where that failed, or where it ended at once
_OF_JOB = ("SLURM", "SRUN_", "SBATCH_", "PBS_", "PMI", "ADAPTOR_")
"""Prefixes of environment variables that belong to this job and not to the daemon, which submits others."""


class DaemonProcess(Protocol):
    """The part of `subprocess.Popen` that is used."""

    def poll(self) -> int | None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def wait(self, timeout: float | None = None) -> int: ...


class Keeper:
    def __init__(
        self,
        directory: Path,
        series: str,
        number: int,
        until: float,
        *,
        queue: Callable[[DaemonJobs], DaemonJobQueue],
        start: Callable[[DaemonJobs, str], DaemonProcess],
        clock: Callable[[], float] = system_clock,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        Args:
            until: when this job has to end, epoch seconds.
            queue: makes the queue of these jobs; may raise AdaptorError.
            start: starts the daemon under a name for `JOB_VARIABLE`.
        """
        self.stopping = False  # whether the scheduler has told the job to end
        self._directory, self._series, self._number, self._until = directory, series, number, until
        self._queue_of, self._start, self._clock, self._sleep = queue, start, clock, sleep
        self._queue: DaemonJobQueue | None = None
        self._name = ""
        self._after_end = 0  # the number of the job that starts when this one has ended; 0: none
        self._at_once = 0  # of the job that may start at once; 0: it is too early
        self._wait: float | None = None  # seconds that the last forecast gave
        self._submissions = Backoff(*_AGAIN, tolerated=1)
        self._next_look = 0.0

    def run(self) -> int:
        """Keep a daemon running until the job ends or another one continues; the exit code of the job."""
        if why := claim(self._directory, self._series, self._number, job="", host=host(), until=self._until):
            log.info("%s: nothing to do", why)
            return 0
        jobs = read_jobs(self._directory)
        assert jobs is not None
        self._name = jobs.name(self._number)
        log.info("job %d of the daemon has started on %s", self._number, host())
        self._look(jobs)
        process, began = self._start(jobs, self._name), self._clock()
        pauses, due = Backoff(*_RESTARTED), 0.0
        while not self._over(jobs):
            if self._clock() >= self._next_look:
                self._look(read_jobs(self._directory) or jobs)
            code = process.poll()
            if code is not None and not due:
                if self._clock() - began >= _STEADY:
                    pauses.succeeded()
                pauses.failed(self._clock(), "")
                due = pauses.until
                log.info("the daemon ended (exit code %d): another one starts", code)
            if code is not None and self._clock() >= due:
                process, began, due = self._start(jobs, self._name), self._clock(), 0.0
            self._sleep(LOOK if code is None else min(LOOK, 0.1))
        _end(process)
        self._leave(jobs)
        return 0

    def _over(self, jobs: DaemonJobs) -> bool:
        if self.stopping:
            log.info("the scheduler ends this job")
            return True
        if self._clock() >= self._until - pad(jobs.walltime):
            log.info("this job is at its walltime")
            return True
        why = replaced(self._directory, self._name)
        if why:
            log.info("%s", why)
        return bool(why)

    def _leave(self, jobs: DaemonJobs) -> None:
        """Cancel the other jobs of the daemon if it was stopped for good: none stays in the queue."""
        with contextlib.suppress(AdaptorError):
            now = read_jobs(self._directory)
            if (now is None or now.series != self._series) and self._queue is not None:
                self._queue.cancel([each for n, each in self._queue.found(jobs).items() if n != self._number])

    def _look(self, jobs: DaemonJobs) -> None:
        """Have the jobs that follow in the queue, each once, and no others. What fails is tried again."""
        now = self._clock()
        self._next_look = now + looks_apart(jobs.walltime)
        try:
            self._plan(jobs, now)
        except (AdaptorError, OSError) as error:
            self._next_look = min(self._next_look, now + _AGAIN[0])
            log.warning("the job that follows could not be seen to: %s", error)

    def _plan(self, jobs: DaemonJobs, now: float) -> None:
        """Have one job queued for the end of this one, and once it is due one that may start at once.

        Raises AdaptorError, OSError.
        """
        queue = self._queue = self._queue or self._queue_of(jobs)
        found = queue.found(jobs)
        mine = found.get(self._number)
        if mine is None:  # a job that waits for no known one would start at once
            raise AdaptorError("the scheduler does not show this job yet")
        alive = {n: each for n, each in found.items() if each.state.ended is None and n != self._number}
        jobs = self._noted(msgspec.structs.replace(jobs, current_job=mine.id), max(found))
        due = self._due(queue, jobs, now)
        if self._after_end in alive and (not due or self._at_once in alive):
            self._submissions.succeeded()
        if self._after_end not in alive and not self._submissions.waiting(now):
            self._after_end = jobs.submitted + 1
            jobs = self._submit(queue, jobs, now, after=mine.id)
        if due and self._at_once not in alive and not self._submissions.waiting(now):
            self._at_once = jobs.submitted + 1
            jobs = self._submit(queue, jobs, now)
        ours = {self._after_end, self._at_once}
        queue.cancel([each for n, each in alive.items() if each.start is None and n not in ours])
        remove_old_folders(self._directory, jobs, found)

    def _submit(self, queue: DaemonJobQueue, jobs: DaemonJobs, now: float, after: str = "") -> DaemonJobs:
        """The record afterwards. Raises AdaptorError, OSError."""
        number = jobs.submitted + 1
        jobs = self._noted(jobs, number)  # first: a number is never used again, whatever becomes of it
        self._submissions.failed(now, "")  # until it is seen in the queue: some end at once
        job = queue.submit(jobs, number, after)
        when = f"starts when job {after} has ended" if after else "may start at once"
        log.info("job %s (number %d) is submitted: it %s", job, number, when)
        return self._noted(msgspec.structs.replace(jobs, next_job=job), number)

    def _due(self, queue: DaemonJobQueue, jobs: DaemonJobs, now: float) -> bool:
        """Whether the job that may start at once is to be in the queue."""
        left = self._until - now
        if left > jobs.walltime / 2:
            return False
        if not self._at_once:
            self._wait = found if (found := queue.wait(jobs)) is not None else self._wait
        return left <= lead(jobs.walltime, self._wait)

    def _noted(self, jobs: DaemonJobs, submitted: int) -> DaemonJobs:
        """The record with what is new, if this is still its current job. Raises AdaptorError."""
        changed = msgspec.structs.replace(jobs, submitted=max(jobs.submitted, submitted))
        now = read_jobs(self._directory)
        if now is None or now.name(now.current) != self._name:
            raise AdaptorError("another job continues")
        if changed != now:
            write_jobs(self._directory, changed)
        return changed


def _end(process: DaemonProcess) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def environment_of(given: Mapping[str, str], jobs: DaemonJobs, directory: Path, name: str) -> dict[str, str]:
    """The variables of the daemon: those of this job that are not about the job itself."""
    kept = {key: value for key, value in given.items() if not key.startswith(_OF_JOB)}
    return {**kept, **jobs.environment, "ADAPTOR_DIR": str(directory), JOB_VARIABLE: name}


def start_daemon(directory: Path, jobs: DaemonJobs, name: str) -> subprocess.Popen[bytes]:
    """Start the daemon; its complaints go into the log of this job."""
    words = ("--config", jobs.config) if jobs.config else ()
    return subprocess.Popen(
        module_command(sys.executable, "adaptor.daemon", "--state", str(directory), *words),
        stdin=subprocess.DEVNULL,
        cwd="/",
        env=environment_of(os.environ, jobs, directory, name),
    )


def queue_of(directory: Path, jobs: DaemonJobs) -> DaemonJobQueue:
    """The queue of the daemon's jobs. Raises AdaptorError: the configuration has no such site, or cannot be
    read."""
    sites = load_config(config_path(jobs.config or None)).sites
    if jobs.site not in sites:
        raise AdaptorError(f"the configuration has no site {jobs.site} any more: adaptor daemon stop")
    return DaemonJobQueue(directory, sites[jobs.site], jobs.site, jobs.partition)


def main() -> int:
    parser = argparse.ArgumentParser(prog="adaptor.daemon.jobs.keeper")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--series", required=True)
    parser.add_argument("--number", type=int, required=True)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    directory: Path = arguments.state
    keeper = Keeper(
        directory,
        arguments.series,
        arguments.number,
        float(os.environ["ADAPTOR_PILOT_END"]),
        queue=lambda jobs: queue_of(directory, jobs),
        start=lambda jobs, name: start_daemon(directory, jobs, name),
    )

    def stop(*_: object) -> None:
        keeper.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        return keeper.run()
    except AdaptorError as error:
        log.error("%s", error)
        return 1


if __name__ == "__main__":
    sys.exit(main())
