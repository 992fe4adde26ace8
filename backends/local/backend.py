"""The local site as a backend. Each question first moves its queue on; a process of its own runs each job."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import backends
from adaptor.config.schema import SiteConfig
from adaptor.model import Limits, QueueState
from adaptor.processes.commands import with_usual_limit
from adaptor.processes.environment import MARKER
from adaptor.processes.identity import host, is_alive, is_here
from adaptor.processes.notes import END, JOB, START
from adaptor.processes.trees import end_trees
from adaptor.reports import JobReport, JobState, OwnJob, gone
from backends.base import Backend, PilotOrder, SchedulerError
from backends.ceilings import LONGEST, POLITE
from backends.local.admission import Admission, admit, this_machine
from backends.local.queue import free_devices, queue_state, report
from backends.local.store import Job, JobEnd, JobEntry, Start, Store
from backends.scripts import with_prologue

_log = logging.getLogger(__name__)

_KEPT_JOBS = 200
"""Number of ended jobs that are remembered at least, the newest; twice as many as may be in the system if
that is more. The times of their ends do not count: the time of day may have been set since."""


class LocalBackend(Backend):
    """The backend of this machine's processors, memory and GPUs as a space-shared cluster.

    All state is in `directory`; several processes may use it at once.
    """

    slot_margin = 0

    def __init__(self, site: SiteConfig, directory: Path, kill_wait: float | None = None) -> None:
        """`kill_wait`: seconds from SIGTERM to SIGKILL at the end of a job; None: the site's `grace_time`.

        Raises SchedulerError: the directory cannot be made.
        """
        self._site = site
        self._directory = directory.absolute()
        self._kill_wait = float(site.grace_time if kill_wait is None else kill_wait)
        self._machine = this_machine(site.processors, site.gpus)
        self._store = Store(self._directory, site.command_timeout)

    def queue_state(self) -> QueueState:
        with self._store.locked() as lock:
            entries = self._advance(lock)
        return queue_state(entries, self._machine, time.time())

    def submit(self, order: PilotOrder) -> str:
        """Submit a request; return its job id. Any SchedulerError means here that the request is not in the
        queue."""
        admission = admit(order, self._machine)
        with self._store.locked() as lock:
            id = self._store.next_id()
            self._store.write(id, JOB, self._job(id, order, admission))
            try:
                self._advance(lock)
                ended = [entry.job.id for entry in self._entries() if entry.ended is not None]
                self._store.forget(ended[: -self._kept()])
            except SchedulerError as error:  # it is in the queue anyway
                _log.warning("after the submission of local job %d: %s", id, error)
        return str(id)

    def _kept(self) -> int:
        limits = self._site.limits
        return max(_KEPT_JOBS, 2 * max(limits.max_pilots or 0, limits.max_pending_requests or 0))

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        with self._store.locked() as lock:
            entries = self._advance(lock)
        pending = queue_state(entries, self._machine, time.time()).pending
        planned = {job.id: job.planned_start for job in pending}
        wanted = set(ids)
        found = [
            report(entry, planned.get(str(entry.job.id)), self._machine)
            for entry in entries
            if str(entry.job.id) in wanted or entry.job.tag.startswith(tag_prefix)
        ]
        return [*found, *gone(wanted.difference(job.id for job in found))]

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        wanted = set(jobs)
        with self._store.locked():
            for entry in self._entries():
                if OwnJob(str(entry.job.id), entry.job.tag) in wanted:
                    supervisor = entry.start.supervisor if entry.start is not None else None
                    if entry.state is JobState.QUEUED:
                        self._store.write(entry.job.id, START, Start(started=time.time(), supervisor=None))
                    elif entry.state is JobState.RUNNING and supervisor is not None and is_alive(supervisor):
                        with contextlib.suppress(ProcessLookupError):  # it is ending
                            os.kill(supervisor["pid"], signal.SIGTERM)

    def advertised_limits(self) -> Limits:
        return Limits(
            max_pending_requests=POLITE, max_pilots=POLITE, max_proc=self._machine.processors, max_tr=LONGEST
        )

    def _job(self, id: int, order: PilotOrder, admission: Admission) -> Job:
        try:
            worker, environment = with_prologue(order, self._site.prologue)
        except OSError as error:
            raise SchedulerError(
                f"{order.directory}: the pilot's folder cannot be written: {error}"
            ) from error
        return Job(
            id=id,
            tag=order.tag,
            p=order.request.p,
            tr=order.request.tr,
            holds=admission.holds,
            memory=admission.memory,
            submitted=time.time(),
            directory=str(order.directory.absolute()),
            worker=worker,
            environment=environment,
            grace=self._kill_wait,
            marker=self._marker(id),
        )

    def _marker(self, id: int) -> str:
        return f"{self._directory}/{id}"

    def _entries(self) -> list[JobEntry]:
        entries, damaged = self._store.entries()
        for id in damaged:
            end_trees(self._marker(id))
        return entries

    def _advance(self, lock: int) -> list[JobEntry]:
        """End what is lost, start what can start; all jobs as they are then."""
        entries = self._entries()
        if end_lost(entries, self._store, time.time()):
            entries = self._entries()
        state = queue_state(entries, self._machine, time.time())
        startable = {job.id for job in state.pending if job.planned_start == state.now}
        idle = free_devices(entries, self._machine)
        for job in (entry.job for entry in entries if str(entry.job.id) in startable):
            held = [idle.pop(0) for _, count in job.holds.gpus for _ in range(count)]
            note = self._store.note(job.id, JOB)
            launch(job, note, lock, self._site.command_timeout, held if self._machine.devices else None)
        return self._entries() if startable else entries


_CODE = Path(backends.__file__).parents[1]


def launch(job: Job, note: Path, lock: int, patience: float, devices: Sequence[str] | None = None) -> None:
    """Return when the supervisor has claimed the job.

    Args:
        lock: the file descriptor of the site's lock.
        patience: the seconds that this may take.
        devices: the GPUs that the job holds; None: the site has none.

    Raises SchedulerError: it has not been claimed; it stays in the queue.
    """
    held = [] if devices is None else [",".join(devices)]
    command = [sys.executable, "-m", "backends.local.supervisor", str(note), str(lock), *held]
    try:
        done = subprocess.run(
            with_usual_limit(command),
            cwd=_CODE,  # the same code as ours, installed or not, and no folder in which others put something
            env={**os.environ, MARKER: job.marker},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=(lock,),
            timeout=patience,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SchedulerError(f"local job {job.id} cannot be started: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise SchedulerError(f"local job {job.id} cannot be started: its supervisor failed: {said[-1]}")


_SLACK = 60.0
"""Seconds after its limit and grace for which a job of another machine is given the benefit of the doubt."""


def end_lost(entries: list[JobEntry], store: Store, now: float) -> bool:
    """Write down the end of lost jobs and end what they left behind; whether there were any.

    Raises SchedulerError: an end cannot be written down.
    """
    lost = [(entry, why) for entry in entries if (why := _why_lost(entry, now))]
    for entry, why in lost:
        # Its supervisor may have written the end after the notes were read and before it left.
        if not store.note(entry.job.id, END).exists():
            end_trees(entry.job.marker)
            end = JobEnd(ended=min(now, entry.limit), state=JobState.NODE_FAILED, reason=why)
            store.write(entry.job.id, END, end)
    return bool(lost)


def _why_lost(entry: JobEntry, now: float) -> str:
    supervisor = entry.start.supervisor if entry.start is not None else None
    if entry.state is not JobState.RUNNING or supervisor is None or is_alive(supervisor):
        return ""
    if is_here(supervisor):
        return f"its supervisor (process {supervisor['pid']}) was killed"
    if supervisor["host"] == host():
        return "the machine was restarted while it ran"
    # Nothing can be seen of another machine's processes, but none outlives its time limit there.
    over = now > entry.limit + entry.job.grace + _SLACK
    return f"its end on {supervisor['host']} was never written down" if over else ""
