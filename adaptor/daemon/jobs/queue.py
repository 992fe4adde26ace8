"""The jobs of a daemon in the queue of its site: submitted, found by their tags, cancelled."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from adaptor.api import GetStart
from adaptor.config.schema import SiteConfig, sites_of
from adaptor.daemon.jobs.record import DaemonJobs
from adaptor.daemon.remote.machines import make_machine, python_of
from adaptor.daemon.sites import limits_of, make_backend
from adaptor.daemon.start_view import read_start
from adaptor.errors import UsageError
from adaptor.forecast.asked import AskedRequest
from adaptor.model import Request
from adaptor.processes.commands import module_command
from adaptor.protocol.state_directory import private_directory
from adaptor.reports import JobReport
from adaptor.resources import TaskSize
from adaptor.units import format_duration, format_size
from backends.base import Backend, PilotOrder
from backends.registry import backend_type

KEPT = 5  # folders of jobs that have ended, the newest
USUAL_WALLTIME = 86_400  # seconds, where the site allows as much and nothing else is said
USUAL_MEMORY = 512 * 1024**2
"""Bytes: five times what a daemon and its keeper take with some bags (`docs/login-node.md`)."""

LEAST_WALLTIME = 120  # seconds in which a daemon serves, and the job after it can start
LEAST_MEMORY = 128 * 1024**2  # bytes of a daemon without bags, and its keeper


def site_of_jobs(config: SiteConfig, name: str, partition: str) -> SiteConfig:
    """The configuration of a site as the jobs of a daemon use it: in one partition.

    Raises UsageError: no job there can run the daemon.
    """
    kind = backend_type(config.backend)
    if config.ssh is not None:
        raise UsageError(
            f"site {name} is reached by ssh, and the daemon's folder is on this machine: submit the daemon on"
            f" {config.ssh.host}"
        )
    if not kind.can_follow:
        raise UsageError(
            f"{kind.title} at site {name} has no jobs that start when another one ends: adaptor daemon start"
        )
    each = sites_of(config)
    if "" in each:
        return msgspec.structs.replace(config, partition=partition or config.partition)
    if partition and partition not in each:
        raise UsageError(f"site {name} has no partition {partition}; it has {', '.join(each)}")
    chosen = each[partition or next(iter(each))]
    return msgspec.structs.replace(chosen, partitions={})


class DaemonJobQueue:
    """Queue of the daemon's jobs at a site. Every method may raise SchedulerError."""

    def __init__(self, directory: Path, config: SiteConfig, name: str, partition: str) -> None:
        """Asks nothing yet. Raises UsageError: as `site_of_jobs`."""
        self._directory, self._name = directory, name
        self._site = site_of_jobs(config, name, partition)
        self._backend: Backend = make_backend(name, self._site, directory, make_machine(self._site))

    def walltime(self, wanted: float | None) -> int:
        """Seconds that a job gets: those wanted, or the usual ones as far as the site allows them.

        Raises UsageError: they are too few for a daemon, or the site does not allow as many.
        """
        if wanted is not None and wanted < LEAST_WALLTIME:
            raise UsageError(
                f"--time {format_duration(wanted)} is too short for a daemon and its hand-over: write"
                f" {format_duration(LEAST_WALLTIME)} or more, such as 1d"
            )
        most = limits_of(self._site, self._backend).max_tr
        if wanted is not None and wanted > most:
            raise UsageError(
                f"site {self._name} lets a job run for {format_duration(most)} at most, not for"
                f" {format_duration(wanted)}"
            )
        if most < LEAST_WALLTIME:
            raise UsageError(
                f"site {self._name} lets a job run for {format_duration(most)}, and a daemon needs"
                f" {format_duration(LEAST_WALLTIME)}: adaptor daemon start"
            )
        return int(min(USUAL_WALLTIME, most) if wanted is None else wanted)

    def submit(self, jobs: DaemonJobs, number: int, after: str = "") -> str:
        """The id of a new job with this number, which waits for the end of job `after` where one is named.

        Raises: as `backends.base.Backend.submit`; OSError, AdaptorError: its folder cannot be made.
        """
        folder = private_directory(jobs.folder(self._directory, number))
        words = ("--state", str(self._directory), "--series", jobs.series, "--number", str(number))
        whole = self._site.processors_per_node if self._site.whole_nodes else None
        return self._backend.submit(
            PilotOrder(
                tag=jobs.tag(number),
                request=Request(whole or 1, jobs.walltime),
                task=TaskSize(memory=jobs.memory),
                directory=folder,
                worker=module_command(python_of(self._site), "adaptor.daemon.jobs.keeper", *words),
                environment={
                    **jobs.environment,
                    "ADAPTOR_DIR": str(self._directory),
                    "ADAPTOR_DIRECTORY": str(folder),
                },
                after=after,
            )
        )

    def found(self, jobs: DaemonJobs, ids: Collection[str] = ()) -> dict[int, JobReport]:
        """Reports of the scheduler on these jobs, by their numbers."""
        reports = self._backend.jobs(ids, jobs.tag_start)
        return {number: each for each in reports if (number := jobs.number_of(each.tag))}

    def cancel(self, reports: Collection[JobReport]) -> None:
        """Cancel the jobs among these reports that wait or run."""
        alive = [each.own for each in reports if each.state.ended is None]
        if alive:
            self._backend.cancel(alive)

    def wait(self, jobs: DaemonJobs) -> float | None:
        """Seconds that a job would wait if it were submitted now, as the forecast has it at worst.

        None: the queue cannot be read, or no start is foreseen.
        """
        request = AskedRequest(tr=jobs.walltime, processors=1, memory=jobs.memory)
        (view, *_) = read_start(self._name, self._site, GetStart(request=request))
        if view.start is None or view.observed is None:
            return None
        return max(0.0, view.start.high - view.observed)


def memory_of(wanted: int | None) -> int:
    """Bytes that a job gets. Raises UsageError: they are too few for a daemon."""
    if wanted is not None and wanted < LEAST_MEMORY:
        raise UsageError(
            f"--mem {format_size(wanted)} is too little for a daemon: write {format_size(LEAST_MEMORY)} or"
            " more"
        )
    return wanted or USUAL_MEMORY


def remove_old_folders(directory: Path, jobs: DaemonJobs, alive: Mapping[int, JobReport]) -> None:
    """Remove folders of ended jobs and of earlier series; the newest stay."""
    with suppress(OSError):
        above = jobs.folder(directory, 0).parent
        kept = {jobs.folder(directory, number).name for number in alive}
        kept |= {jobs.folder(directory, jobs.submitted - back).name for back in range(KEPT)}
        for folder in above.iterdir():
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)
