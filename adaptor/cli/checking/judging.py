"""Findings from what the pilot and the tasks of a live check tell, each problem with a way out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from adaptor import __version__
from adaptor.api import PilotRecord
from adaptor.daemon.clock import SKEW
from adaptor.decisions.pilot_rules import ASK_SUPPORT
from adaptor.model import PilotState
from adaptor.units import counted, format_duration, format_size
from backends.findings import Finding, error, ok, warning

_MOST_OF_NODE = 0.9  # part of a node's memory from which on a limit is that of the whole node


class NodeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of the task on one node, which `adaptor.worker.trial` has printed."""

    node: str = ""
    problem: str = ""  # why there is none; empty: there is
    python: str = ""
    executable: str = ""
    version: str = ""
    bound: bool = False  # whether the kernel keeps the job to its processors
    memory: int = 0  # bytes of the node
    memory_limit: int | None = None
    reached: list[str] = []
    time: float = 0.0  # epoch seconds, by the node's clock
    skew: float = 0.0  # seconds by which that clock is ahead


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known when the job has ended, or was given up."""

    folder: str
    addresses: Sequence[str]
    """Addresses of a daemon that tasks tried; empty: workers use files or a tunnel."""
    beside: bool  # whether they are of a daemon that runs besides that of the check
    nodes: int  # on which it was to run
    each: int  # processors on each of them
    wait: float  # seconds for which it might be queued
    told: Sequence[NodeAnswer]  # by node
    pilot: PilotRecord | None  # None: the daemon made no request
    problems: Sequence[str]
    """News of the pilot, as `adaptor why` tells them; without a pilot why no request was made."""


def judge(trial: Trial) -> list[Finding]:
    """Findings on the answers of the nodes and the scheduler: good ones, warnings and errors."""
    pilot = trial.pilot
    if pilot is None:
        why = "; ".join(trial.problems) or "no reason is known"
        return [error(f"no job was submitted within {format_duration(trial.wait)}: {why}")]
    if pilot.state == PilotState.REFUSED.value:
        return [error(f"the job of the check could not be run: {pilot.end_reason}")]
    if pilot.started is None and pilot.ended is None:
        why = "".join(f" ({text})" for text in trial.problems)
        return [
            error(
                f"job {pilot.job} did not start within {format_duration(trial.wait)}{why} and was cancelled: "
                "wait for longer with --wait 2h"
            )
        ]
    found = [error(text) for text in trial.problems]
    if not trial.told and (not found or pilot.state != PilotState.COMPLETED.value):
        why = f": {pilot.end_reason}" if pilot.end_reason else ""
        return [*found, error(f"job {pilot.job} ran no task: {pilot.state}{why}")]
    for told in trial.told:
        found += _node(trial, told)
    if 0 < len(trial.told) < trial.nodes:
        answered = ", ".join(told.node for told in trial.told)
        found.append(
            error(
                f"job {pilot.job} was to run on {counted(trial.nodes, 'node')}, but only "
                f"{answered} answered: the workers of a pilot start on some of its nodes only; "
                f"{ASK_SUPPORT}"
            )
        )
    return [*found, _accounting(pilot)]


def _node(trial: Trial, told: NodeAnswer) -> Iterator[Finding]:
    if told.problem:
        yield error(f"a worker starts on {told.node}, but its task failed: {told.problem}")
        return
    where = f"Python {told.python} ({told.executable}) starts on {told.node}"
    if told.version != __version__:
        yield error(
            f"{where} with version {told.version} of the adaptor, this machine has {__version__}: install "
            "the same version on both"
        )
    else:
        yield ok(f"{where}, with version {told.version} of the adaptor")
    yield ok(f"{told.node} sees and writes {trial.folder}")
    yield _daemon(trial, told)
    yield _clock(told)
    kept = ", and keeps it to them" if told.bound else ""
    yield ok(f"{told.node} gives the job {counted(trial.each, 'processor')} as asked for{kept}")
    yield _memory(told)


def _daemon(trial: Trial, told: NodeAnswer) -> Finding:
    whose = "the daemon" if trial.beside else "this machine, at the port of the daemon,"
    if not trial.addresses:
        return ok(f"a worker on {told.node} reached the daemon of the check, and ran a task")
    if told.reached:
        return ok(f"{whose} is reached from {told.node} at {told.reached[0]}")
    return error(
        f"{whose} is reached from {told.node} at none of {', '.join(trial.addresses)}: set `daemon.host` to "
        "an address that the nodes know, ask for `daemon.port` to be opened, or set `spool`"
    )


def _clock(told: NodeAnswer) -> Finding:
    if abs(told.skew) <= SKEW:
        return ok(f"the clock of {told.node} is within {format_duration(SKEW)} of this machine's")
    way = "ahead of" if told.skew > 0 else "behind"
    return warning(
        f"the clock of {told.node} is {format_duration(abs(told.skew))} {way} this machine's: times of tasks "
        "will be wrong; ask for NTP on the nodes"
    )


def _memory(told: NodeAnswer) -> Finding:
    if told.memory_limit is None:
        return warning(
            f"no cgroup limits the memory of jobs on {told.node}: a task that takes more than its `--mem` "
            "takes it from the node's other jobs, and may end its worker; ask for ConstrainRAMSpace (Slurm) "
            "or the cgroup hook (PBS)"
        )
    if told.memory_limit < told.memory * _MOST_OF_NODE:
        return warning(
            f"jobs that ask for no memory get {format_size(told.memory_limit)} on {told.node}, all tasks "
            "together: use --mem"
        )
    return ok(f"a cgroup limits the memory of this job on {told.node} to {format_size(told.memory_limit)}")


def _accounting(pilot: PilotRecord) -> Finding:
    if pilot.ended is None or pilot.state == PilotState.VANISHED.value:
        return warning(
            f"the scheduler does not report the end of job {pilot.job}: pilots that end while no daemon runs "
            "count as vanished; ask for accounting (Slurm: sacct; PBS: job_history_enable)"
        )
    if pilot.state == PilotState.COMPLETED.value:
        ran = pilot.ended - (pilot.started or pilot.ended)
        return ok(
            f"the scheduler reports the end of job {pilot.job}: completed after "
            f"{counted(round(ran), 'second')}"
        )
    reason = f" ({pilot.end_reason})" if pilot.end_reason else ""
    return warning(f"the scheduler says that job {pilot.job} ended as {pilot.state}{reason}")
