"""The live check of a site: a bag of one task for each of two nodes, by a daemon of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from adaptor import api
from adaptor.api import BagInput, PilotRecord, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.cli.checking.judging import NodeAnswer, Trial, judge
from adaptor.client.asking import check_own_key
from adaptor.client.bags import Client
from adaptor.client.environment import captured
from adaptor.config.schema import Config, LimitsConfig, SiteConfig
from adaptor.daemon.clock import system_clock
from adaptor.daemon.evidence import last_line
from adaptor.daemon.lock import holder_of
from adaptor.daemon.process import start
from adaptor.daemon.remote.machines import make_machine, python_of
from adaptor.daemon.sites import make_backend
from adaptor.errors import AdaptorError, NoDaemonError
from adaptor.model import PilotState
from adaptor.private_files import write_private
from adaptor.processes.commands import module_command
from adaptor.protocol.access import read_access, worker_access
from adaptor.protocol.state_directory import private_directory
from adaptor.units import Duration, format_duration
from backends.base import SchedulerError
from backends.findings import Finding, error
from backends.machines.base import Machine
from backends.registry import backend_type

WALLTIME = 120  # seconds of the request
_POLL = 1.0
_SETTLING = 30.0  # seconds from the end of the bag to that of its job
_BEYOND = 180.0  # seconds beyond its walltime after which a job that started is given up
_STOPPING = 60.0  # seconds for the daemon to cancel its job and to end
_LARGEST = 64 * 1024

Tell = Callable[[str], None]


def live_check(name: str, config: Config, state: Path, wait: float, tell: Tell) -> list[Finding]:
    """Run a bag at a site, and judge what its pilot and its tasks tell.

    The job ends with the check; where the check is killed (SIGKILL), when the bag is done.

    Limits, budgets and pauses of a daemon that runs do not hold it up: it has one of its own.

    Args:
        state: the state directory.
        wait: seconds for which the job may be queued.
        tell: gets a line of progress.
    """
    machine = make_machine(config.sites[name])
    try:
        check_own_key("start a daemon for a check")
        with _ended_by_signals():
            return _Check(name, config, state, machine).run(wait, tell)
    except (AdaptorError, OSError) as problem:
        return [error(f"the job of the check could not be run: {problem}")]
    finally:
        machine.close()


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let the ends of a session and a process end what is within as Ctrl-C does."""

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Check:
    def __init__(self, name: str, config: Config, state: Path, machine: Machine) -> None:
        self._name, self._config, self._state, self._machine = name, config, state, machine
        self._site: SiteConfig = config.sites[name]
        self._beside = holder_of(state) is not None  # whether a daemon runs here

    def run(self, wait: float, tell: Tell) -> list[Finding]:
        """Two processors on each of two nodes, if the site has and gives them; else on one; else one."""
        found = make_backend(self._name, self._site, self._state, self._machine).queue_state().nodes
        nodes = [node for node in found if node.ours and node.in_service]
        whole = self._site.processors_per_node if self._site.whole_nodes else None
        several = len(nodes) > 1 and (whole or backend_type(self._site.backend).apart)
        each = whole or min([2, *(node.processors for node in nodes)])
        for size in [(2, each)] * bool(several) + [(1, each), (1, whole or 1)]:
            trial = self._tried(*size, wait, tell)
            if trial.pilot is None or trial.pilot.state != PilotState.REFUSED.value:
                break
        return judge(trial)

    def _tried(self, nodes: int, each: int, wait: float, tell: Tell) -> Trial:
        ssh, here = self._site.ssh, self._state / f"check-{secrets.token_hex(8)}"
        there, mail = here, Path(self._site.spool or here) / here.name
        try:
            private_directory(here)
            if ssh is not None:
                there = self._machine.private_folder(Path(ssh.directory) / here.name)
            with _daemon(here, self._own_config(there, mail, nodes, each)) as client:
                access = (self._state if self._beside else here) / worker_access(self._name)
                addresses = () if self._site.spool or ssh else read_access(access).addresses
                words = ("adaptor.worker.trial", str(nodes), *addresses)
                spec = BagSpec(
                    name="check",
                    cpus=each,
                    bind="no",
                    replicas=0,
                    time=1.0,
                    cwd=str(there),
                    output=str(there / "output"),
                    environment={} if ssh else captured(os.environ)[0],
                )
                tasks = [TaskInput(list(module_command(python_of(self._site), *words)))] * nodes
                following = _Following(client, client.submit(BagInput(spec=spec, tasks=tasks)).bag)
                pilot = following.to_end(nodes, wait, tell)
                kinds = [] if pilot is None else ["problem"]
                why = client.ask(api.GetWhy(pilot=None if pilot is None else pilot.id, kinds=kinds))
                return Trial(
                    folder=str(there),
                    addresses=addresses,
                    beside=self._beside,
                    nodes=nodes,
                    each=each,
                    wait=wait,
                    told=following.answers(self._machine, there / "output"),
                    pilot=pilot,
                    problems=list(dict.fromkeys(line.text for line in why.lines)),
                )
        finally:
            shutil.rmtree(here, ignore_errors=True)
            with contextlib.suppress(SchedulerError):
                self._machine.remove([there, mail])

    def _own_config(self, there: Path, mail: Path, nodes: int, each: int) -> Config:
        """The configuration of the check's daemon: one request for all tasks, and no budget.

        Workers use files where another daemon has the port that nodes may reach.
        """
        site, daemon = self._site, self._config.daemon
        limits = LimitsConfig(max_pending_requests=1, max_proc=nodes * each, max_tr=Duration(WALLTIME))
        apart = backend_type(site.backend).apart if nodes > 1 and not site.whole_nodes else ()
        own = msgspec.structs.replace(
            site,
            limits=limits,
            partitions={
                at: msgspec.structs.replace(each, limits=limits) for at, each in site.partitions.items()
            },
            extra_args=(*site.extra_args, *apart),
            heuristic="static",
            idle_timeout=Duration(10),
            budget=None,
            donation=None,
        )
        if site.ssh is not None:
            own = msgspec.structs.replace(own, ssh=msgspec.structs.replace(site.ssh, directory=str(there)))
        if site.spool or (self._beside and site.ssh is None):
            own = msgspec.structs.replace(own, spool=str(mail))
        port = 0 if self._beside else daemon.port
        return Config(sites={self._name: own}, daemon=msgspec.structs.replace(daemon, port=port))


@contextlib.contextmanager
def _daemon(folder: Path, config: Config) -> Iterator[Client]:
    """A client of a daemon in a folder; it ends with its pilots."""
    path = folder / "config.yaml"
    write_private(path, msgspec.json.encode(config, enc_hook=str))
    start(folder, str(path), until_idle=True)
    try:
        with Client(folder, patience=_STOPPING) as client:
            yield client
    finally:
        with contextlib.suppress(NoDaemonError), Client(folder) as client:
            client.ask(api.Stop(pilots=True))
        until = time.monotonic() + _STOPPING
        while holder_of(folder) is not None and time.monotonic() < until:
            time.sleep(0.1)


class _Following:
    """Follows a bag of which one request is made."""

    def __init__(self, client: Client, bag: int) -> None:
        self._client, self._bag, self._event = client, bag, 0
        self._heard: dict[int, float] = {}  # epoch seconds at which the end of a task was known, by task

    def to_end(self, tasks: int, wait: float, tell: Tell) -> PilotRecord | None:
        """Wait for the ends of the tasks and of their job, or for what shows that they do not come."""
        limit = time.monotonic() + wait
        pilot = self._until(lambda pilot: pilot.job is not None, limit)
        if pilot is not None and pilot.job is not None:
            tell(f"job {pilot.job} is submitted; it may wait for {format_duration(wait)}")
            pilot = self._until(lambda pilot: pilot.started is not None, limit)
        if pilot is not None and pilot.started is not None:
            tell(f"job {pilot.job} has started")
            self._until(lambda _: len(self._heard) == tasks, time.monotonic() + WALLTIME + _BEYOND)
            pilot = self._until(lambda _: False, time.monotonic() + _SETTLING)
        return pilot

    def _until(self, done: Callable[[PilotRecord], bool], limit: float) -> PilotRecord | None:
        """The request, once this is true of it, it has ended or the time (monotonic seconds) has come."""
        while True:
            made = self._client.ask(api.GetPilots(ended=True))
            kept = [pilot for pilot in made if pilot.state != PilotState.WITHDRAWN.value] or made
            pilot = min(kept, key=lambda pilot: pilot.id, default=None)
            if time.monotonic() > limit or (pilot and (pilot.ended is not None or done(pilot))):
                return pilot
            if self._hear(_POLL):  # else the next question waits
                time.sleep(_POLL)

    def _hear(self, wait: float) -> bool:
        """Take in new ends of tasks; whether all have ended."""
        (news,) = self._client.events({self._bag: self._event}, wait)
        self._event = news.last
        self._heard |= {event.task: system_clock() for event in news.tasks}
        return news.ended

    def answers(self, machine: Machine, output: Path) -> list[NodeAnswer]:
        """The answers that tasks have printed into this folder, one for each node."""
        self._hear(0.0)
        printed, told = machine.read_files(output, ("*.out", "*.err"), _LARGEST), dict[str, NodeAnswer]()
        for task in self._client.ask(api.GetTasks(self._bag, ["done", "failed"])):
            node = task.node or ""
            try:
                found = msgspec.json.decode(printed.get(f"{task.task}.out", b""), type=NodeAnswer)
                told[node] = msgspec.structs.replace(
                    found, node=node, skew=found.time - self._heard[task.task]
                )
            except msgspec.DecodeError:
                words = last_line(printed.get(f"{task.task}.err", b"").decode(errors="replace"))
                told[node] = NodeAnswer(
                    node=node, problem=task.error or words or f"exit code {task.exit_code}"
                )
        return list(told.values())
