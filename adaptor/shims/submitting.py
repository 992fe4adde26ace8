"""`sbatch`: a small job becomes a task of an open bag, all others go to the real command."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import hashlib
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adaptor import api
from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.bagfile.scripts.getopt import GivenOption, OptionError
from adaptor.bagfile.scripts.sbatch import SBATCH
from adaptor.bagfile.scripts.script import ScriptBag, Submission, options_of, script_bag
from adaptor.batch_script import OWN_SCRIPT, BatchScript, Element, OwnScript
from adaptor.cli.daemon_process import ensure_daemon, tell_started
from adaptor.client.bags import Client
from adaptor.client.environment import captured
from adaptor.config.loading import config_path, load_config
from adaptor.errors import AdaptorError, ObstaclesError, UsageError
from adaptor.guard_rails import TimeLimit
from adaptor.private_files import write_private
from adaptor.protocol.state_directory import state_directory
from adaptor.resources import OwnNeeds
from adaptor.shims.jobs import ACTIVE, Job, Jobs, Named
from adaptor.shims.real import RULES, pass_on, tell
from adaptor.shims.rules import (
    OF_SHIM,
    Dependencies,
    DependencyError,
    Rules,
    TooLarge,
    check,
    dependencies,
    time_limit,
)

IDLE = 600.0
"""Seconds without a job after which an open bag closes."""
BAG = "ADAPTOR_SHIM_BAG"
"""The variable that names the bag of a caller."""
_WRAP = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n"
_PAUSE = 1.0
"""Seconds between two looks at jobs that `--wait` waits for."""


def sbatch(arguments: list[str], folder: Path) -> int:
    """The exit code of `sbatch`, or none: the real one has taken this process over."""
    data, piped = b"", False
    try:
        given, rest = SBATCH.table.leading(arguments)
        piped = not rest and all(each.name != "wrap" for each in given)
        data, name, rest = _script(given, rest)
        if not data.startswith(b"#!"):
            raise TooLarge("the file is no script")
        of_file, problems = options_of(data.decode(errors="replace"), SBATCH, lambda _name: False)
        if problems:
            raise problems[0]
        given = [*of_file, *given]
        small = _small(data, name, given, rest, folder)
        return _tell(_submitted(small), {each.name for each in given})
    except (TooLarge, OptionError, OSError) as error:
        pass_on("sbatch", arguments, str(error), data if piped else None)
    except DependencyError as error:
        tell(str(error))
        print("sbatch: error: Batch job submission failed: Job dependency problem", file=sys.stderr)
        return 1


def _small(
    data: bytes, name: str, given: Sequence[GivenOption], arguments: Sequence[str], folder: Path
) -> _Small:
    """Raises TooLarge, or DependencyError: the job is for the scheduler, which cannot have it."""
    awaited = dependencies(given)
    try:
        small = _Small(data, name, given, arguments, _rules(folder), awaited)
        try:
            if ensure_daemon(small.rules.config or None, sites=small.spec.sites):
                tell_started()
        except AdaptorError as error:
            raise TooLarge(str(error)) from error
        return small
    except TooLarge as error:
        if awaited.ok or awaited.any:
            problem = f"{error}; and the scheduler does not know the jobs for which it waits"
            raise DependencyError(problem) from error
        raise


def _script(given: Sequence[GivenOption], rest: list[str]) -> tuple[bytes, str, list[str]]:
    """The script, the usual name of the job, and the script's arguments. Raises TooLarge."""
    wrapped = [each.value for each in given if each.name == "wrap"]
    if wrapped:
        if rest:
            raise TooLarge("--wrap and a script")
        return _WRAP.format(wrapped[-1]).encode(errors="surrogateescape"), "wrap", []
    if not rest:
        return sys.stdin.buffer.read(), "sbatch", []
    return Path(rest[0]).read_bytes(), Path(rest[0]).name, rest[1:]


class _Small:
    """A job that fits into a bag. Raises TooLarge where it does not."""

    def __init__(
        self,
        data: bytes,
        name: str,
        given: Sequence[GivenOption],
        arguments: Sequence[str],
        rules: Rules,
        awaited: Dependencies,
    ) -> None:
        self.rules = rules
        self.awaited = awaited
        check(given, data.decode(errors="replace"), os.environ)
        self.limit = time_limit(given, self.rules)
        try:
            self._read(data, name, given, arguments)
        except ObstaclesError as error:
            raise TooLarge(error.first) from error
        except AdaptorError as error:
            raise TooLarge(str(error)) from error

    def _read(self, data: bytes, name: str, given: Sequence[GivenOption], arguments: Sequence[str]) -> None:
        config = load_config(config_path(self.rules.config or None))
        submission = Submission(
            folder=str(Path.cwd()),
            user=getpass.getuser(),
            host=socket.gethostname(),
            home=str(Path.home()),
            environment=captured(os.environ)[0],
            arguments=arguments,
            given=[each for each in given if each.name not in OF_SHIM],
            now=time.time(),
            sites=config.sites,
            notified=bool(config.notify.default),
        )
        self.made: ScriptBag = script_bag(data, name, name, submission)
        for remark in self.made.remarks:
            if remark.changes:
                raise TooLarge(remark.text)
            tell(remark.text)
        options = dict(self.made.options)
        self.script: BatchScript = options.pop("script")
        self.name: str = options.pop("name")
        cwd = os.path.join(submission.folder, os.path.expanduser(self.made.cwd))  # noqa: PTH111, PTH118
        if not os.path.isdir(cwd):  # noqa: PTH112
            raise TooLarge(f"{cwd}: no such folder")
        self.cwd = os.path.normpath(cwd)
        of_spec = {key: value for key, value in options.items() if key in BagSpec.__struct_fields__}
        of_spec |= {"timeout": TimeLimit(part=1.0), "time": self.limit, "canary": "no"}
        self.spec = BagSpec(
            **{**of_spec, "sites": self.made.sites, "close_idle": IDLE},
            name=os.environ.get(BAG, "jobs"),
            cwd=self.cwd,
            environment=self.made.environment,
            script=msgspec.structs.replace(self.script, array=False, jobs=True),
        )

    @property
    def alone(self) -> bool:
        """Whether it needs a bag of its own: an array of which only some run at a time."""
        return self.spec.max_running is not None

    def shape(self) -> str:
        """The same for jobs that share a bag."""
        common = msgspec.structs.replace(self.spec, cwd="", output="", environment={}, script=None)
        empty = not self.made.environment
        return hashlib.sha256(msgspec.msgpack.encode((common, empty))).hexdigest()[:24]

    @property
    def variables(self) -> dict[str, str]:
        return {**self.made.environment, **self.script.variables}

    def tasks(self, known: Mapping[str, str], body: bytes) -> list[TaskInput]:
        """`known`, `body`: what the bag has."""
        changed = {name: value for name, value in self.variables.items() if known.get(name) != value}
        found = []
        for place, task in enumerate(self.made.tasks):
            own = OwnScript(
                output=self.script.output,
                error=self.script.error,
                append=self.script.append,
                body=b"" if self.script.body == body else self.script.body,
                place=place if self.script.array else None,
                submitted=time.time(),
                cpus=self.spec.cpus,
                limit=self.limit,
            )
            written = {OWN_SCRIPT: msgspec.json.encode(own).decode()}
            environment = {**changed, **(task.environment or {}), **written}
            found.append(TaskInput(task.command, self.name, self.cwd, environment))
        return found

    def needs(self) -> OwnNeeds:
        gpus, memory = self.spec.gpus, self.spec.task.memory
        return OwnNeeds(
            cpus=self.spec.cpus,
            memory=memory,
            gpus=gpus.count if gpus is not None else 0,
            gpu_type=gpus.type if gpus is not None else "",
            time=self.limit,
        )


def _rules(folder: Path) -> Rules:
    try:
        return msgspec.yaml.decode((folder / RULES).read_bytes(), type=Rules)
    except FileNotFoundError:
        return Rules()
    except msgspec.ValidationError as error:
        raise UsageError(f"{folder / RULES}: {error}") from None


class _OpenBag(msgspec.Struct, frozen=True):
    """A bag for jobs of one shape, as the state directory remembers it."""

    bag: int
    variables: dict[str, str]
    body: bytes


def _submitted(small: _Small) -> list[int]:
    """The numbers of the job, or of its elements. Raises AdaptorError, DependencyError."""
    with Client(say=tell) as client:
        awaited = _awaited(small)
        if awaited:
            return _after(client, small, awaited)
        if small.alone:
            return _numbers(*_opened(client, small, open=False))
        return _shared(client, small)


def _numbers(bag: int, tasks: Sequence[int]) -> list[int]:
    return [Element(bag, task, None).job for task in tasks]


def _opened(client: Client, small: _Small, *, open: bool, **more: Any) -> tuple[int, list[int]]:
    spec = msgspec.structs.replace(small.spec, **more)
    bag = client.open_bag(spec)
    tasks = client.append(bag, small.tasks(small.variables, small.script.body))
    if not open:
        client.close_bag(bag)
    return bag, tasks


def _shared(client: Client, small: _Small) -> list[int]:
    """In the open bag of its shape; another bag is opened where that is closed, or has variables too many."""
    path = state_directory() / "shims" / small.shape()
    known = _known(path, small)
    if known is None or (tasks := _appended(client, small, known)) is None:
        with _locked(path):
            newer = _known(path, small)
            if newer is None or newer == known or (tasks := _appended(client, small, newer)) is None:
                bag, tasks = _opened(client, small, open=True)
                opened = _OpenBag(bag, small.variables, small.script.body)
                write_private(path, msgspec.msgpack.encode(opened))
                return _numbers(bag, tasks)
            known = newer
    return _numbers(known.bag, tasks)


def _known(path: Path, small: _Small) -> _OpenBag | None:
    try:
        known = msgspec.msgpack.decode(path.read_bytes(), type=_OpenBag)
    except (OSError, msgspec.DecodeError):
        return None
    return known if known.variables.keys() <= small.variables.keys() else None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _appended(
    client: Client, small: _Small, known: _OpenBag, needs: OwnNeeds | None = None, **links: Any
) -> list[int] | None:
    """The numbers of its tasks in an open bag; None: the bag is closed."""
    tasks = [
        msgspec.structs.replace(task, needs=needs, **links)
        for task in small.tasks(known.variables, known.body)
    ]
    try:
        return client.append(known.bag, tasks)
    except UsageError:
        if _is_open(client, known.bag):
            raise
        return None


def _is_open(client: Client, bag: int) -> bool:
    try:
        return all(each.open for each in client.ask(api.GetBags(str(bag))).bags)
    except UsageError:
        return False


def _awaited(small: _Small) -> dict[str, list[Job]]:
    """The unfinished jobs that must end first, by `after` and `after_any`. Raises DependencyError."""
    jobs = Jobs()
    found = {"after": _there(jobs, small.awaited.ok), "after_any": _there(jobs, small.awaited.any)}
    for job in found["after"]:
        if job.state not in ("COMPLETED", *ACTIVE):
            raise DependencyError(f"job {job.id} is {job.state}: what waits for it by afterok never starts")
    if small.awaited.singleton:
        found["after_any"] += [job for job in jobs.all(ended=False) if job.name == small.name]
    active = {kind: [job for job in some if job.state in ACTIVE] for kind, some in found.items()}
    return {kind: some for kind, some in active.items() if some}


def _there(jobs: Jobs, wanted: Sequence[Named]) -> list[Job]:
    found = []
    for each in wanted:
        some = jobs.of([each])
        if not some:
            raise DependencyError(f"there is no job {each.number}")
        found += some
    return found


def _after(client: Client, small: _Small, awaited: Mapping[str, list[Job]]) -> list[int]:
    """In the bag of the jobs for which it waits: only there can tasks wait for each other."""
    bags = {job.bag for some in awaited.values() for job in some}
    still_open = [bag for bag in bags if _is_open(client, bag)]
    if not still_open:
        links = {kind: tuple({job.bag for job in some}) for kind, some in awaited.items()}
        return _numbers(*_opened(client, small, open=False, **links))
    if len(bags) > 1 or small.alone:
        several = "are in several bags" if len(bags) > 1 else "are in an open bag, and its % asks for its own"
        raise DependencyError(f"the jobs for which it waits {several}")
    bag = still_open[0]
    tasks = {kind: tuple(job.task for job in some) for kind, some in awaited.items()}
    numbers = _appended(client, small, _OpenBag(bag, {}, b""), small.needs(), **tasks)
    if numbers is None:
        raise DependencyError(f"the bag {bag} of the jobs for which it waits has just closed; try again")
    return _numbers(bag, numbers)


def _tell(numbers: Sequence[int], names: set[str]) -> int:
    job = numbers[0]
    if "parsable" in names:
        print(job, flush=True)
    elif "quiet" not in names:
        print(f"Submitted batch job {job}", flush=True)
    if "wait" not in names:
        return 0
    while True:
        found = Jobs().of([Named(job)])
        if not any(each.state in ACTIVE for each in found):
            return max((each.code or int(each.state != "COMPLETED") for each in found), default=1)
        time.sleep(_PAUSE)
