"""Findings from the answers of a probe's nodes, each problem with a way out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from adaptor import __version__
from adaptor.daemon.clock import SKEW
from adaptor.model import PilotState
from adaptor.reports import JobReport
from adaptor.shortfalls import Shortfall, gave_less
from adaptor.units import counted, format_duration, format_size
from backends.findings import Finding, error, ok, warning

_MOST_OF_NODE = 0.9  # part of a node's memory from which on a limit is that of the whole node


class NodeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one node, which `adaptor.worker.trial` has written."""

    node: str
    python: str
    executable: str
    version: str
    problem: str
    reached: list[str]
    processors: int  # processors that the job has there
    bound: bool  # whether the kernel keeps the job to some of the node's processors
    memory_asked: bool
    memory: int  # bytes of the node
    memory_limit: int | None
    shortfalls: tuple[Shortfall, ...]
    spool: str
    time: float


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known when the job has ended, or was given up. Times are epoch seconds."""

    job: str
    folder: str
    python: str  # the command that was to start it
    addresses: Sequence[str]
    """Addresses of the daemon for workers; empty: workers use a spool, or none is known."""
    daemon_runs: bool
    spool: str
    nodes: int  # on which it was to run
    told: Sequence[NodeAnswer]  # by node; empty: nothing was found in the folder
    called: bool  # whether a node has connected to this machine to tell the time
    skews: Mapping[str, float]  # by node: seconds by which its clock is ahead, at least; missing: not known
    report: JobReport | None  # the scheduler's last report; None: it knows nothing of the job
    words: str  # the last line of the job's log


def judge(trial: Trial) -> list[Finding]:
    """Findings on the answers of the nodes and the scheduler: good ones, warnings and errors."""
    found = [] if trial.told else [*_silent(trial)]
    for told in trial.told:
        found += [*_python(trial, told), *_folder(trial, told), *_addresses(trial, told)]
        found += [*_clock(trial, told), *_processors(told), *_memory(told)]
    if 0 < len(trial.told) < trial.nodes:
        heard = ", ".join(told.node for told in trial.told)
        found.append(
            error(
                f"job {trial.job} was to run on {counted(trial.nodes, 'node')}, but only {heard} answered: "
                "the workers of a pilot start on some of its nodes only; ask the cluster's support about "
                "hooks and prologs that run when a job starts processes on its other nodes"
            )
        )
    return [*found, *_accounting(trial)]


def _silent(trial: Trial) -> Iterator[Finding]:
    if trial.called:
        yield error(
            f"Python runs on the node, but what it writes into {trial.folder} is not seen here: use a state "
            "directory on a file system that the nodes share ($ADAPTOR_DIR)"
        )
        return
    said = f": {trial.words}" if trial.words else ""
    yield error(
        f"job {trial.job} left nothing in {trial.folder}{said}. Does {trial.python} start on the nodes, with "
        "the adaptor installed? Set `python:`, or load a module by `prologue:`"
    )
    if not trial.words:
        yield error(
            "or the nodes do not see that folder: put the state directory ($ADAPTOR_DIR) on a file system "
            "that they share"
        )


def _python(trial: Trial, told: NodeAnswer) -> Iterator[Finding]:
    where = f"Python {told.python} ({told.executable}) starts on {told.node}"
    if told.problem:
        yield error(
            f"{where}, but a worker does not ({told.problem}): install the adaptor for {trial.python}"
        )
    elif told.version != __version__:
        yield error(
            f"{where} with version {told.version} of the adaptor, this machine has {__version__}: install "
            "the same version on both"
        )
    else:
        yield ok(f"{where}, with version {told.version} of the adaptor")


def _folder(trial: Trial, told: NodeAnswer) -> Iterator[Finding]:
    yield ok(f"{told.node} sees and writes {trial.folder}")
    if trial.spool and told.spool:
        yield error(
            f"{told.node} cannot write into the spool {trial.spool} ({told.spool}): `spool` must be a folder "
            "that the nodes share"
        )
    elif trial.spool:
        yield ok(f"{told.node} sees and writes the spool {trial.spool}")


def _addresses(trial: Trial, told: NodeAnswer) -> Iterator[Finding]:
    if trial.spool:
        return
    if not trial.addresses:
        yield warning("no daemon runs, so no address was tried: adaptor daemon start, then check again")
        return
    whose = "the daemon" if trial.daemon_runs else "this machine, at the port of the daemon,"
    if told.reached:
        yield ok(f"{whose} is reached from {told.node} at {told.reached[0]}")
        return
    yield error(
        f"{whose} is reached from {told.node} at none of {', '.join(trial.addresses)}: set `daemon.host` to "
        "an address that the nodes know, ask for `daemon.port` to be opened, or set `spool`"
    )


def _clock(trial: Trial, told: NodeAnswer) -> Iterator[Finding]:
    skew = trial.skews.get(told.node)
    if skew is None:
        yield warning(f"the clock of {told.node} was not compared: it could not connect to this machine")
    elif abs(skew) > SKEW:
        way = "ahead of" if skew > 0 else "behind"
        yield warning(
            f"the clock of {told.node} is {format_duration(abs(skew))} {way} this machine's: times of "
            "tasks will be wrong; ask for NTP on the nodes"
        )
    else:
        yield ok(f"the clock of {told.node} is within {format_duration(SKEW)} of this machine's")


def _processors(told: NodeAnswer) -> Iterator[Finding]:
    if told.shortfalls:
        yield error(
            f"{gave_less(told.node, told.shortfalls)}, and the rest is paid for and idle. Show this to the "
            "cluster's support: a job has more than the steps in it (Slurm: TaskPluginParam; PBS: hooks)"
        )
    else:
        kept = ", and keeps it to them" if told.bound else ""
        yield ok(f"{told.node} gives the job {counted(told.processors, 'processor')} as asked for{kept}")


def _memory(told: NodeAnswer) -> Iterator[Finding]:
    if told.memory_limit is None:
        yield warning(
            f"no cgroup limits the memory of jobs on {told.node}: a task that takes more than its `--mem` "
            "takes it from the node's other jobs, and may end its worker; ask for ConstrainRAMSpace (Slurm) "
            "or the cgroup hook (PBS)"
        )
    elif not told.memory_asked and told.memory_limit < told.memory * _MOST_OF_NODE:
        yield warning(
            f"jobs that ask for no memory get {format_size(told.memory_limit)} on {told.node}, all tasks "
            "together: use --mem"
        )
    else:
        yield ok(f"a cgroup limits the memory of this job on {told.node} to {format_size(told.memory_limit)}")


def _accounting(trial: Trial) -> Iterator[Finding]:
    report = trial.report
    if report is None or report.state.ended is None:
        yield warning(
            f"the scheduler does not report the end of job {trial.job}: pilots that end while no daemon runs "
            "count as vanished; ask for accounting (Slurm: sacct; PBS: job_history_enable)"
        )
    elif report.state.ended is PilotState.COMPLETED:
        ran = report.end - report.start if report.end is not None and report.start is not None else 0.0
        yield ok(
            f"the scheduler reports the end of job {trial.job}:"
            f" completed after {counted(round(ran), 'second')}"
        )
    else:
        level = warning if trial.told else error
        reason = f" ({report.reason})" if report.reason else ""
        yield level(f"the scheduler says that job {trial.job} ended as {report.state.value}{reason}")
