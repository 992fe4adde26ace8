"""`adaptor daemon submit`: the daemon as a job of its own, which hands over to the next one."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from adaptor import api
from adaptor.cli.options import config_option, duration, json_option, of_kind
from adaptor.cli.printing import clock, print_json, print_lines, printable
from adaptor.client.asking import NoAnswerError, ask, check_own_key
from adaptor.config.loading import config_path, configured_place, load_config
from adaptor.decisions.new_bags import check_sites
from adaptor.errors import AdaptorError, NoDaemonError, UsageError
from adaptor.option_kinds import DURATION, MEMORY
from adaptor.protocol.state_directory import state_directory

if TYPE_CHECKING:
    from adaptor.config.schema import Config
    from adaptor.daemon.jobs.queue import DaemonJobQueue
    from adaptor.daemon.jobs.record import DaemonJobs
    from adaptor.reports import JobReport

_INHERITED = ("PATH", "LD_LIBRARY_PATH", "SLURM_CONF", "PBS_CONF_FILE", "PBS_SERVER", "XDG_CONFIG_HOME")
"""Variables of this shell with which the scheduler and the configuration are found on the node, too."""
_LOOK = 1.0  # seconds between two looks at a job that is awaited


@click.command(short_help="Run it as a small job that hands over to the next one.")
@click.option("--site", metavar="NAME", help="Where (default: the only site, or the first).")
@click.option("--partition", default="", metavar="NAME", help="In which partition or queue of it.")
@click.option(
    "-t", "--time", "walltime", type=of_kind(DURATION), metavar="DURATION",
    help="Walltime of each job (default: a day, or what the site allows).",
)  # fmt: skip
@click.option("--mem", type=of_kind(MEMORY), metavar="SIZE", help="Memory of each job (default: 512M).")
@click.option(
    "--wait", type=duration, default="1m", show_default=True, metavar="DURATION",
    help="How long this command waits for its start; the job stays in the queue.",
)  # fmt: skip
@config_option
@json_option
def submit(
    site: str | None,
    partition: str,
    walltime: float | None,
    mem: int | None,
    wait: float,
    config: str | None,
    as_json: bool,
) -> None:
    """Run the daemon as a job of one processor, for clusters whose login nodes end long processes.

    Before its walltime ends, the job has the next one in the queue, which takes over; after a crash, or
    when its node is lost, the next one starts by itself. All commands find the daemon where it runs. One
    that runs on this machine continues until the job has started. `adaptor daemon stop` ends the jobs.

    \b
    Examples:
      adaptor daemon submit
      adaptor daemon submit --site hpc --partition long -t 3d
    """
    from adaptor.daemon.jobs.record import read_jobs

    check_own_key("submit a daemon")
    directory = state_directory()
    before = read_jobs(directory)
    if before is None:
        jobs, queue = _new(directory, site, partition, walltime, mem, config)
    elif any((site, partition, walltime, mem, config and config != before.config)):
        raise UsageError(
            f"the daemon runs as a job at {before.site} already; to change its job: adaptor daemon stop, then"
            " adaptor daemon submit with the options"
        )
    else:
        jobs, queue = before, _queue(directory, before)
    alive = [each for each in queue.found(jobs).values() if each.state.ended is None]
    if not alive:
        jobs = _submitted(directory, jobs, queue)
    view = _await_start(directory, jobs, queue, wait)
    jobs = read_jobs(directory) or jobs
    found = queue.found(jobs)
    if as_json:
        print_json({"submitted": None if alive else jobs.next_job, "daemon": view, "jobs": _rows(found)})
        return
    print_lines(job_lines(jobs, found))
    if view is not None:
        print_lines([f"daemon on {view.host} (process {view.pid})"])


def _new(
    directory: Path,
    name: str | None,
    partition: str,
    walltime: float | None,
    memory: int | None,
    given: str | None,
) -> tuple[DaemonJobs, DaemonJobQueue]:
    """A new record of jobs, and their queue. Raises UsageError: the daemon cannot run as a job by this
    configuration."""
    from adaptor.daemon.jobs.queue import DaemonJobQueue, memory_of
    from adaptor.daemon.jobs.record import DaemonJobs

    path = config_path(given)
    if path is None:
        raise UsageError("no configuration says where a job could run: adaptor site init, then repeat this")
    config = load_config(path)
    check_sites(filter(None, [name]), config.sites)
    name = name or next(iter(config.sites))
    _check(config)
    queue = DaemonJobQueue(directory, config.sites[name], name, partition)
    environment = {key: os.environ[key] for key in _INHERITED if os.environ.get(key)}
    return DaemonJobs(
        series=secrets.token_hex(4),
        site=name,
        partition=partition,
        memory=memory_of(memory),
        walltime=queue.walltime(walltime),
        config=str(path.absolute()) if configured_place(given)[1] else "",
        environment=environment,
    ), queue


def _check(config: Config) -> None:
    """Raises UsageError: the sites do not go with a daemon that is on another machine each time."""
    from backends.registry import backend_type

    for name, site in config.sites.items():
        if backend_type(site.backend).on_this_machine:
            raise UsageError(
                f"site {name} ({site.backend}) runs tasks on the daemon's machine, and would run them in the"
                " job of the daemon: leave it out of the configuration"
            )
    if config.daemon.host is not None:
        raise UsageError(
            f"daemon.host names {config.daemon.host}, and a job of the daemon runs on any node: leave it out"
            " of the configuration"
        )


def _queue(directory: Path, jobs: DaemonJobs) -> DaemonJobQueue:
    """The queue of the daemon's jobs. Raises AdaptorError: the configuration has no such site, or cannot be
    read."""
    from adaptor.daemon.jobs.keeper import queue_of

    return queue_of(directory, jobs)


def _submitted(directory: Path, jobs: DaemonJobs, queue: DaemonJobQueue) -> DaemonJobs:
    """The record of a first job, or of one after all others have ended."""
    from adaptor.daemon.jobs.record import forget_jobs, write_jobs

    number = jobs.submitted + 1
    first = not jobs.submitted
    jobs = msgspec.structs.replace(jobs, submitted=number, next_job="")
    write_jobs(directory, jobs)
    try:
        job = queue.submit(jobs, number)
    except AdaptorError:
        if first:
            forget_jobs(directory)
        raise
    jobs = msgspec.structs.replace(jobs, next_job=job)
    write_jobs(directory, jobs)
    return jobs


def _await_start(
    directory: Path, jobs: DaemonJobs, queue: DaemonJobQueue, wait: float
) -> api.DaemonView | None:
    """The daemon of a job; None: no job has started within `wait` seconds.

    Raises AdaptorError: the job that was submitted has ended, and its daemon never ran.
    """
    from adaptor.daemon.jobs.record import read_jobs

    until = time.monotonic() + wait
    while True:
        now = read_jobs(directory)
        if now is not None and now.current and now.current >= jobs.current:
            with suppress(NoDaemonError, NoAnswerError):
                view = ask(api.GetDaemon())
                if view.host == now.host and view.pid:
                    return view
        found = queue.found(jobs)
        if found and all(each.state.ended is not None for each in found.values()):
            raise AdaptorError("\n".join(job_lines(now or jobs, found)))
        if time.monotonic() >= until:
            return None
        time.sleep(_LOOK)


def job_lines(jobs: DaemonJobs, found: Mapping[int, JobReport]) -> list[str]:
    """Lines on each job that waits or runs; if there is none, on the last one that ended."""
    alive = {number: each for number, each in sorted(found.items()) if each.state.ended is None}
    lines = []
    for number, each in alive.items():
        if each.start is not None:
            end = f" until {clock(each.start + jobs.walltime)}"
            where = f" on {jobs.host}" if number == jobs.current and jobs.host else ""
            lines.append(f"job {each.id} at {jobs.site} runs the daemon{where}{end}")
        else:
            why = each.never or each.reason
            lines.append(f"job {each.id} at {jobs.site} waits{f': {printable(why)}' if why else ''}")
    if alive:
        return lines
    last = found.get(max(found, default=0))
    ended = (
        f"job {last.id} at {jobs.site} has ended ({last.state.value})" if last else "no job is in the queue"
    )
    if last is not None and jobs.current < max(found):
        ended += _why_not(jobs, max(found))
    return [f"{ended}; adaptor daemon submit submits the next one, adaptor daemon stop ends the attempt"]


def _why_not(jobs: DaemonJobs, number: int) -> str:
    """The last line of the log of a job whose daemon never ran, as the end of a sentence."""
    from adaptor.daemon.evidence import last_line

    directory = state_directory()
    folder = jobs.folder(directory, number)
    texts = []
    with suppress(OSError):
        texts = [path.read_text(errors="replace") for path in sorted(folder.glob("*.out"))]
    if said := last_line("\n".join(texts)):
        return f" before its daemon ran: {printable(said)}"
    return (
        f" before its daemon ran, and has written nothing into {folder}: its node may not have this folder;"
        " name one that login nodes and compute nodes share ($ADAPTOR_DIR), or another partition"
    )


def _rows(found: Mapping[int, JobReport]) -> list[dict[str, object]]:
    return [
        {"job": job.id, "number": n, "state": job.state.value, "start": job.start, "reason": job.reason}
        for n, job in sorted(found.items())
    ]


def end_jobs(jobs: DaemonJobs) -> list[str]:
    """Cancel all jobs of the daemon, after their record was removed; the ids of those that waited or ran.

    Raises AdaptorError: they cannot be cancelled now; each ends by itself when it starts.
    """
    queue = _queue(state_directory(), jobs)
    alive = [each for each in queue.found(jobs).values() if each.state.ended is None]
    queue.cancel(alive)
    return [each.id for each in alive]
