"""Snakemake's side: jobs that are ready are appended to bags, whose events say how they end."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

from adaptor.api import GetBags, TaskEvent, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.cli.daemon_process import ensure_daemon
from adaptor.client.bags import GONE, Client
from adaptor.client.environment import captured, current_umask
from adaptor.errors import AdaptorError, UsageError
from adaptor.outputs.packing import output_name
from adaptor.resources import TaskGpus

_MIB = 2**20
_OURS = ("mem_mb", "runtime", "gpu", "gpus", "gpu_model")


class BagKey(NamedTuple):
    """Jobs with the same key run in the same bag."""

    rule: str
    threads: int
    resources: tuple[tuple[str, Any], ...]  # of those that the bag takes into account, sorted


def key_of(job: JobExecutorInterface) -> BagKey:
    """The bag of a job: of its rule, or of its group, and of what it needs."""
    known = ((name, job.resources.get(name)) for name in _OURS)
    resources = tuple(sorted((name, value) for name, value in known if _is_given(value)))
    return BagKey(job.name, max(1, job.threads), resources)


def spec_of(key: BagKey, common: BagSpec) -> BagSpec:
    """The bag of such jobs; `common`: what all bags of a workflow share.

    Raises ValueError: the resources are none that a task can have.
    """
    resources = dict(key.resources)
    # `gpu` as Snakemake's own plugins name it, or `gpus`.
    count = resources.get("gpu") or resources.get("gpus")
    return msgspec.structs.replace(
        common,
        name=f"{common.name}: {key.rule}",
        cpus=key.threads,
        memory=math.ceil(resources["mem_mb"] * _MIB) if resources.get("mem_mb") else None,
        gpus=(TaskGpus(count, str(resources.get("gpu_model", ""))) if count else None),
        time=60.0 * resources["runtime"] if resources.get("runtime") else None,
    )


def _is_given(value: object) -> bool:
    """False for what is not there, and for what Snakemake does not know yet, which is a text."""
    return (isinstance(value, (int, float)) and value > 0) or (
        isinstance(value, str) and bool(value) and not value.startswith("<")
    )


def how_it_ended(event: TaskEvent) -> str:
    """In words, such as `failed on n1: exit code 2`."""
    where = f" on {event.node}" if event.node else ""
    if event.error:
        why = event.error
    elif event.signal is not None:
        why = f"signal {event.signal}"
    else:
        why = f"exit code {event.exit_code}"
    return f"{event.state}{where}: {why}"


def log_files(output: str, place: tuple[int, int], attempt: int) -> list[Path]:
    """The standard error and the standard output of an attempt."""
    bag, task = place
    folder = Path(output.replace("{bag}", str(bag)))
    return [folder / output_name(task, attempt, stream) for stream in ("stderr", "stdout")]


POLL = 2.0  # seconds that one question for events waits; a new bag counts from the next one on
IDLE = 0.2  # seconds between looks for jobs, while none runs

TaskPlace = tuple[int, int]  # a bag and a task in it


class Executor(RemoteExecutor):
    def __post_init__(self) -> None:
        if self.workflow.remote_execution_settings.immediate_submit:
            raise WorkflowError(
                "the executor 'adaptor' has no --immediate-submit: its bags need a Snakemake that runs"
            )
        settings = self.workflow.executor_settings
        here = Path.cwd()
        self._common = BagSpec(
            name=settings.name or here.name,
            sites=tuple(name.strip() for name in settings.site.split(",")) if settings.site else (),
            canary="no",  # Snakemake stops at failures, or goes on with --keep-going
            retries=0,  # --retries is Snakemake's
            replicas=0,  # two attempts would write the same files
            close_idle=GONE,
            cwd=str(here),
            output=str(here / ".snakemake" / "adaptor" / "{bag}"),
            environment=captured({**os.environ, **self.envvars()})[0],
            umask=current_umask(),
        )
        self._keep_logs = settings.keep_logs
        self._client = Client(start=lambda: ensure_daemon(None, sites=self._common.sites))
        self._bags: dict[BagKey, int] = {}
        self._heard: dict[int, int] = {}  # by bag, the last event received
        self._told: dict[int, str] = {}  # by bag, what was logged of requests that fail
        self._ended: dict[TaskPlace, TaskEvent] = {}  # of jobs whose end is not reported yet
        self._lock = threading.Lock()
        self._of_group: int | None = None

    # --- jobs that are ready -------------------------------------------------------------------

    def run_job(self, job: JobExecutorInterface) -> None:
        self._append(key_of(job), [job])

    def run_jobs(self, jobs: list[JobExecutorInterface]) -> None:
        by_bag: dict[BagKey, list[JobExecutorInterface]] = defaultdict(list)
        for job in jobs:
            self.run_job_pre(job)
            by_bag[key_of(job)].append(job)
        for key, some in by_bag.items():
            self._append(key, some)

    def _append(self, key: BagKey, jobs: list[JobExecutorInterface]) -> None:
        tasks = [TaskInput(self.format_job_exec(job), name=self.get_jobname(job)) for job in jobs]
        try:
            bag = self._bag(key)
            numbers = self._client.append(bag, tasks)
        except (UsageError, ValueError) as error:
            for job in jobs:
                self.report_job_error(SubmittedJobInfo(job), msg=f"the adaptor refuses the job: {error} ")
            return
        except AdaptorError as error:
            raise WorkflowError(f"adaptor: {error}") from error
        for job, number in zip(jobs, numbers, strict=True):
            info = SubmittedJobInfo(job, external_jobid=f"{bag}/{number}", aux={"place": (bag, number)})
            self.report_job_submission(info)

    def get_job_args(self, job: JobExecutorInterface) -> str:
        """For the Snakemake on the node: the jobs of a group share the processors of its task."""
        self._of_group = max(1, job.threads) if job.is_group() else None
        return str(super().get_job_args(job))

    @property
    def cores(self) -> int | str:
        """What `get_job_args` says of the last job; Snakemake asks for it there."""
        usual: int | str = super().cores
        return self._of_group or usual

    def _bag(self, key: BagKey) -> int:
        """The open bag of such jobs, which is opened with the first of them.

        Raises:
            UsageError: no site could ever run such a job.
            ValueError: its resources are none that a task can have.
        """
        if key not in self._bags:
            bag = self._client.open_bag(spec_of(key, self._common))
            with self._lock:
                self._bags[key], self._heard[bag] = bag, 0
            threading.Thread(target=self._stay, args=(bag,), name=f"stays {bag}", daemon=True).start()
            self.logger.info(f"Jobs of {key.rule} are tasks of bag {bag}: adaptor watch {bag}")
        return self._bags[key]

    def _stay(self, bag: int) -> None:
        """Follow a bag, so that the daemon keeps it open as long as this program lives."""
        with contextlib.suppress(AdaptorError):
            for _ in self._client.follow(bag):
                pass

    # --- their ends ----------------------------------------------------------------------------

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncGenerator[SubmittedJobInfo, None]:
        if active_jobs:
            try:
                await asyncio.to_thread(self._hear, {_place(job)[0] for job in active_jobs})
            except AdaptorError as error:
                raise WorkflowError(f"adaptor: {error}") from error
        self.next_seconds_between_status_checks = 0 if active_jobs else IDLE
        for job in active_jobs:
            event = self._ended.pop(_place(job), None)
            if event is None:
                yield job
            else:
                self._report(job, event)

    def _hear(self, bags: Iterable[int]) -> None:
        """Wait for events of bags. A job may have ended before Snakemake learns that it was submitted."""
        with self._lock:
            since = {bag: self._heard[bag] for bag in bags}
        told_bags = self._client.events(since, wait=POLL)
        for told in told_bags:
            for event in told.tasks:
                self._ended[told.bag, event.task] = event
            with self._lock:
                self._heard[told.bag] = told.last
        if not any(told.tasks for told in told_bags):
            for view in self._client.ask(GetBags(",".join(map(str, bags)))).bags:
                if view.held_off != self._told.get(view.id, ""):
                    self._told[view.id] = view.held_off
                    if view.held_off:
                        self.logger.warning(f"bag {view.id} gets no pilot now: {view.held_off}")

    def _report(self, job: SubmittedJobInfo, event: TaskEvent) -> None:
        logs = log_files(self._common.output, _place(job), event.attempt)
        if event.state != "done":
            self.report_job_error(job, msg=f"{how_it_ended(event)}. ", aux_logs=[str(file) for file in logs])
            return
        if not self._keep_logs:
            for file in logs:
                file.unlink(missing_ok=True)
        self.report_job_success(job)

    # --- the end of the workflow ---------------------------------------------------------------

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:  # noqa: ARG002
        """All jobs: Snakemake cancels whole workflows, and its list lacks those that are being looked at."""
        for bag in self._bags.values():
            try:
                self._client.cancel(bag)
            except AdaptorError as error:
                self.logger.warning(
                    f"the jobs of bag {bag} may go on: {error}; end them: adaptor cancel {bag}"
                )

    def shutdown(self) -> None:
        super().shutdown()
        for bag in self._bags.values():
            try:
                self._client.close_bag(bag)
            except AdaptorError as error:
                self.logger.warning(f"bag {bag} stays open: {error}; close it: adaptor append {bag} --close")
        self._client.close()


def _place(job: SubmittedJobInfo) -> TaskPlace:
    place: TaskPlace = (job.aux or {})["place"]
    return place
