"""The probe of `site check --live`: submit a job, await its end, collect its answers and the scheduler's."""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from adaptor.config.schema import Config, SiteConfig
from adaptor.daemon.clock import system_clock
from adaptor.daemon.evidence import last_line
from adaptor.daemon.lock import holder_of
from adaptor.daemon.remote.check import answering
from adaptor.daemon.remote.machines import make_machine, python_of
from adaptor.daemon.sites import make_backend, stays_inside
from adaptor.daemon.trial.judging import NodeAnswer, Trial, judge
from adaptor.errors import AdaptorError
from adaptor.model import PilotState, Request
from adaptor.processes.commands import module_command
from adaptor.protocol.access import AccessError, last_port, read_access, worker_access
from adaptor.protocol.listener import addresses
from adaptor.reports import JobReport, OwnJob
from adaptor.resources import TaskSize
from adaptor.units import format_duration
from backends.base import Backend, PilotOrder, SchedulerError, SubmitRefused
from backends.findings import Finding, error
from backends.machines.base import Machine

_LONGEST = 200  # bytes that are read of a caller


class ClockPort(msgspec.Struct, frozen=True):
    port: int
    skews: dict[str, float]  # by node: seconds by which the clock of one that has called is ahead


@contextlib.contextmanager
def clock_port(word: str, port: int) -> Iterator[ClockPort]:
    """Reads the clocks of callers that present the secret; others are ignored.

    `port`: taken where it is free; 0: any. Raises OSError: no port can be bound.
    """
    skews: dict[str, float] = {}

    def note(caller: socket.socket) -> None:
        said, time, node = caller.recv(_LONGEST).decode().split()
        if said == word:
            skews[node] = float(time) - system_clock()

    with answering(_bound(port), note) as bound:
        yield ClockPort(bound, skews)


def _bound(port: int) -> socket.socket:
    if port:
        with contextlib.suppress(OSError):
            return socket.create_server(("0.0.0.0", port))  # noqa: S104  (every caller must say the word)
    return socket.create_server(("0.0.0.0", 0))  # noqa: S104


WALLTIME = 60  # seconds
_POLL = 2.0
_SETTLING = 15.0
"""Seconds for which the scheduler may take to tell an end, and a shared file system to show a file."""
_BEYOND = 180.0  # seconds beyond its walltime after which a job that started is given up
_LARGEST = 64 * 1024

Tell = Callable[[str], None]


def live_check(name: str, config: Config, state: Path, wait: float, tell: Tell) -> list[Finding]:
    """Run one job of a minute at a site and judge what it tells; the job never outlives the check.

    Args:
        state: the state directory.
        wait: seconds for which the job may be queued.
        tell: gets a line of progress.
    """
    machine = make_machine(config.sites[name])
    try:
        return _Check(name, config, state, machine).run(wait, tell)
    except (SchedulerError, AdaptorError, OSError) as problem:
        return [error(f"the job of the check could not be run: {problem}")]
    finally:
        machine.close()


class _Check:
    def __init__(self, name: str, config: Config, state: Path, machine: Machine) -> None:
        self._name, self._config, self._state, self._machine = name, config, state, machine
        self._site: SiteConfig = config.sites[name]
        self._backend: Backend = make_backend(name, self._site, state, machine)
        self._word = secrets.token_hex(8)
        self._tag = f"adaptor-check-{self._word}"
        self._daemon_runs = holder_of(state) is not None

    def run(self, wait: float, tell: Tell) -> list[Finding]:
        home = self._state if self._site.ssh is None else Path(self._site.ssh.directory)
        folder = self._machine.private_folder(home / f"check-{self._word}")
        try:
            with clock_port(self._word, 0 if self._daemon_runs else self._config.daemon.port) as clock:
                return self._run(folder, clock, wait, tell)
        finally:
            with contextlib.suppress(SchedulerError):
                self._machine.remove([folder])

    def _run(self, folder: Path, clock: ClockPort, wait: float, tell: Tell) -> list[Finding]:
        tried = self._addresses(clock)
        job, order = self._submit(folder, tried, clock)
        submitted = system_clock()
        try:
            tell(f"job {job} is submitted; it may wait for {format_duration(wait)}")
            report = self._await_end(job, order, wait, tell)
        finally:
            with contextlib.suppress(SchedulerError):
                self._backend.cancel([OwnJob(job, self._tag)])
        if report is not None and report.start is None and report.state.ended is None:
            why = f" ({report.never or report.reason})" if report.never or report.reason else ""
            return [
                error(
                    f"job {job} did not start within {format_duration(wait)}{why} and was cancelled: "
                    "wait for longer with --wait 2h"
                )
            ]
        told, words = self._found(folder)
        trial = Trial(
            job=job,
            folder=str(folder),
            python=python_of(self._site),
            addresses=tried,
            daemon_runs=self._daemon_runs,
            spool=self._site.spool or "",
            nodes=order.spread or 1,
            told=told,
            called=bool(clock.skews),
            skews=_skews(clock.skews, told, submitted),
            report=report,
            words=words,
        )
        return judge(trial)

    def _submit(self, folder: Path, tried: tuple[str, ...], clock: ClockPort) -> tuple[str, PilotOrder]:
        """Submit the job: two processors on each of two nodes, if the site has and gives them; else on
        one."""
        nodes = [node for node in self._backend.queue_state().nodes if node.ours and node.in_service]
        there = min(2, len(nodes))
        each = min([2, *(node.processors for node in nodes)]) if nodes else 1
        for count in range(there, 1, -1):
            order = self._order(folder, tried, clock, count, each)
            with contextlib.suppress(SubmitRefused):
                return self._backend.submit(order), order
        order = self._order(folder, tried, clock, 0, 1)
        return self._backend.submit(order), order

    def _order(
        self, folder: Path, tried: tuple[str, ...], clock: ClockPort, nodes: int, each: int
    ) -> PilotOrder:
        """The order for the job. `each`: processors of each node; `nodes`: 0: one, wherever it fits."""
        whole = self._site.processors_per_node if self._site.whole_nodes else None
        return PilotOrder(
            tag=self._tag,
            request=Request((whole or each) * max(1, nodes), WALLTIME),
            task=TaskSize(),
            spread=nodes,
            directory=folder,
            worker=module_command(python_of(self._site), "adaptor.worker.trial", str(folder)),
            environment={
                "ADAPTOR_DIRECTORY": str(folder),
                "ADAPTOR_TRIAL": self._word,
                "ADAPTOR_TRIAL_ADDRESSES": " ".join(tried),
                "ADAPTOR_TRIAL_CLOCK": " ".join(self._named(clock.port)),
                "ADAPTOR_TRIAL_SPOOL": self._site.spool or "",
            },
        )

    def _addresses(self, clock: ClockPort) -> tuple[str, ...]:
        """Addresses of the running daemon, else those that it would have; none if workers use files."""
        if self._site.spool:
            return ()
        if self._daemon_runs:
            path = self._state / worker_access(self._name)
            if self._site.ssh is None:
                with contextlib.suppress(AccessError):
                    return read_access(path).addresses
                return self._named(last_port(path))
            return ()
        return self._named(clock.port) if self._site.ssh is None else ()

    def _named(self, port: int) -> tuple[str, ...]:
        """Addresses of this machine, as nodes may find it."""
        if not port:
            return ()
        return addresses(self._config.daemon.host, port, loopback=stays_inside(self._site))

    def _await_end(self, job: str, order: PilotOrder, wait: float, tell: Tell) -> JobReport | None:
        """Wait for the job's end; return the scheduler's last report of it. None: it knows nothing of the
        job."""
        began, started, last = time.monotonic(), 0.0, None
        folder, nodes = order.directory, max(1, order.spread)
        heard = False
        while True:
            now = time.monotonic()
            found = [each for each in self._backend.jobs([job], self._tag) if each.tag == self._tag]
            last = found[0] if found else last
            if last is not None and last.state.ended is not None:
                self._settle(folder, nodes, failed=last.state.ended is not PilotState.COMPLETED)
                return last
            if last is not None and last.start is not None and not started:
                started = now
                tell(f"job {job} has started")
            heard = heard or bool(self._found(folder)[0])
            if heard and not started:
                started = now
            limit = (WALLTIME + _BEYOND) if started else wait
            if now - (started or began) > limit:
                return last
            if heard and not found:  # it has ended, and the scheduler has forgotten it
                return None
            time.sleep(_POLL)

    def _settle(self, folder: Path, nodes: int, *, failed: bool) -> None:
        """A file of another machine may be seen late."""
        until = time.monotonic() + _SETTLING
        while time.monotonic() < until:
            told, words = self._found(folder)
            if len(told) >= nodes or (failed and words):
                return
            time.sleep(1.0)

    def _found(self, folder: Path) -> tuple[list[NodeAnswer], str]:
        """Answers of the nodes, and the last line of the job's log."""
        found = self._machine.read_files(folder, ("trial-*.json", "*.out"), _LARGEST)
        told = []
        for name in sorted(found):
            if name.endswith(".json"):
                with contextlib.suppress(msgspec.DecodeError):
                    told.append(msgspec.json.decode(found[name], type=NodeAnswer))
        logs = [found[name].decode(errors="replace") for name in sorted(found) if name.endswith(".out")]
        return told, last_line("\n".join(logs))[:300]


def _skews(heard: Mapping[str, float], told: Sequence[NodeAnswer], submitted: float) -> dict[str, float]:
    """Skew of each node's clock by its call; else at least as far as its times lie outside of the job's
    life."""
    found = {}
    for answer in told:
        early, late = answer.time - submitted, answer.time - system_clock()
        outside = early if early < 0 else max(late, 0.0) or None
        skew = heard.get(answer.node, outside)
        if skew is not None:
            found[answer.node] = skew
    return found
