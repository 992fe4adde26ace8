"""The local site as a backend. Each question first moves its queue on."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.model import Limits, QueueState
from adaptor.processes.identity import is_alive
from adaptor.processes.notes import JOB, START
from adaptor.processes.trees import end_trees
from adaptor.reports import JobReport, JobState
from backends.base import Backend, PilotOrder, SchedulerError
from backends.ceilings import LONGEST, POLITE
from backends.local.admission import Admission, admit, this_machine
from backends.local.queue import free_devices, queue_state, report
from backends.local.store import Job, JobEntry, Start, Store
from backends.local.supervision import end_lost, launch
from backends.scripts import with_prologue

_log = logging.getLogger(__name__)

_KEPT_JOBS = 200
_KEPT_SECONDS = 24 * 3600.0
"""Seconds for which ended jobs are remembered, the newest `_KEPT_JOBS` of them."""


class LocalBackend(Backend):
    """This machine's processors, memory and GPUs as a space-shared cluster (see `backends.base.Backend`).

    All state is in `directory`; several processes may use it at once.
    """

    slot_margin = 0

    def __init__(self, site: SiteConfig, directory: Path, kill_wait: float | None = None) -> None:
        """`kill_wait`: seconds from SIGTERM to SIGKILL at the end of a job; None: the site's `grace_time`.

        Raises:
            SchedulerError: the directory cannot be made.
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
        """Besides SubmitRefused, any SchedulerError means here that the request is not in the queue."""
        admission = admit(order, self._machine)
        with self._store.locked() as lock:
            id = self._store.next_id()
            self._store.write(id, JOB, self._job(id, order, admission))
            try:
                self._advance(lock)
                self._forget_old()
            except SchedulerError as error:  # it is in the queue anyway
                _log.warning("after the submission of local job %d: %s", id, error)
        return str(id)

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        with self._store.locked() as lock:
            entries = self._advance(lock)
        pending = queue_state(entries, self._machine, time.time()).pending
        planned = {job.id: job.planned_start for job in pending}
        wanted = set(ids)
        return [
            report(entry, planned.get(str(entry.job.id)), self._machine)
            for entry in entries
            if str(entry.job.id) in wanted or entry.job.tag.startswith(tag_prefix)
        ]

    def cancel(self, ids: Collection[str]) -> None:
        wanted = set(ids)
        with self._store.locked():
            for entry in self._entries():
                if str(entry.job.id) in wanted:
                    supervisor = entry.start.supervisor if entry.start is not None else None
                    if entry.state is JobState.QUEUED:
                        self._store.write(entry.job.id, START, Start(started=time.time(), supervisor=None))
                    elif entry.state is JobState.RUNNING and supervisor is not None and is_alive(supervisor):
                        with contextlib.suppress(ProcessLookupError):  # it is ending
                            os.kill(supervisor["pid"], signal.SIGTERM)

    def advertised_limits(self) -> Limits:
        return Limits(max_pending_requests=POLITE, max_proc=self._machine.processors, max_tr=LONGEST)

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
            held = [idle.pop(0) for _ in range(job.holds.gpus)]
            note = self._store.note(job.id, JOB)
            launch(job, note, lock, self._site.command_timeout, held if self._machine.devices else None)
        return self._entries() if startable else entries

    def _forget_old(self) -> None:
        ended = [entry for entry in self._entries() if entry.ended is not None]
        kept = {
            entry.job.id
            for entry in ended[-_KEPT_JOBS:]
            if (time.time() - (entry.ended or 0.0)) < _KEPT_SECONDS
        }
        self._store.forget([entry.job.id for entry in ended if entry.job.id not in kept])
