"""The bags that take small jobs: an open one for each shape of job, or that of the jobs before it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from adaptor import api
from adaptor.batch_script import Element
from adaptor.client.bags import Client
from adaptor.errors import AdaptorError, UsageError
from adaptor.private_files import write_private
from adaptor.protocol.state_directory import state_directory
from adaptor.resources import OwnNeeds
from adaptor.shims.connecting import connected
from adaptor.shims.jobs import ACTIVE, Job, Jobs, Named
from adaptor.shims.passing import starts_at_once
from adaptor.shims.real import in_job
from adaptor.shims.remembering import folder, locked, remembered
from adaptor.shims.rules import DependencyError, TooLarge
from adaptor.shims.small_jobs import SmallJob


def _start(small: SmallJob) -> None:
    """Start a daemon where none runs; check where the tasks would run.

    Raises TooLarge: they cannot, or this is a job of the scheduler's, with which a daemon would end.
    """
    from adaptor.cli.daemon_process import ensure_daemon, find_daemon, tell_started  # loads click
    from adaptor.daemon.jobs.record import read_jobs

    if in_job(os.environ) and find_daemon() is None and read_jobs(state_directory()) is None:
        raise TooLarge("no daemon runs, and a job starts none, which would end with it: adaptor daemon start")
    try:
        if ensure_daemon(small.rules.config or None, sites=small.spec.sites):
            tell_started()
    except AdaptorError as error:
        raise TooLarge(str(error)) from error


class OpenBag(msgspec.Struct, frozen=True):
    """A bag for jobs of one shape, as the state directory remembers it."""

    bag: int
    variables: dict[str, str]
    body: bytes
    sites: tuple[str, ...]
    rest: str  # `SmallJob.rest`

    def lacking(self, small: SmallJob) -> list[str]:
        """The variables of the bag that a job lacks: its task would find them set."""
        return sorted(self.variables.keys() - small.variables.keys())

    def why_not(self, small: SmallJob) -> str:
        """The reason why a job cannot join the bag; empty: only their sizes differ."""
        lacking = self.lacking(small)
        if lacking:
            names = ", ".join(lacking[:_NAMED]) + (" …" if len(lacking) > _NAMED else "")
            return f"variables that it lacks ({names}): set them, or submit all of them from one environment"
        if self.sites != tuple(small.spec.sites):
            here, there = (", ".join(some) or "any" for some in (small.spec.sites, self.sites))
            return f"another site ({there}; this one: {here})"
        if self.rest != small.rest():
            return "other options, and only cpus, memory, gpus and time may differ"
        return ""


_NAMED = 5  # variables that a message names


def submitted(small: SmallJob) -> list[int]:
    """The numbers of a job, or of its elements.

    Raises:
        TooLarge: the daemon cannot have it, or the scheduler would start it now.
        DependencyError: its dependency cannot be followed.
        AdaptorError: it may be submitted, or not.
    """
    with connected(start=lambda: _start(small)) as client:
        awaited = _awaited(small)
        if awaited:
            return _after(client, small, awaited)
        if starts_at_once(client, small):
            raise TooLarge("it can start there now")
        if small.alone:
            return _numbers(*_opened(client, small, open=False))
        return _shared(client, small)


def _numbers(bag: int, tasks: Sequence[int]) -> list[int]:
    return [Element(bag, task, None).job for task in tasks]


def _opened(client: Client, small: SmallJob, *, open: bool, **more: Any) -> tuple[int, Sequence[int]]:
    """The number of a new bag with the tasks of a job, and theirs."""
    _start(small)
    spec = msgspec.structs.replace(small.spec, **more)
    tasks = small.tasks(small.variables, small.script.body)
    try:
        return client.submit(api.BagInput(spec=spec, tasks=tasks), open=open).bag, range(len(tasks))
    except UsageError as error:  # no site could ever run it
        raise TooLarge(str(error)) from error


def _shared(client: Client, small: SmallJob) -> list[int]:
    """Append to the open bag of its shape; open another bag if that one is closed, or has too many
    variables."""
    path = folder() / small.shape()
    known = _known(path, small)
    if known is None or (tasks := _appended(client, small, known)) is None:
        with locked(path):
            newer = _known(path, small)
            if newer is None or newer == known or (tasks := _appended(client, small, newer)) is None:
                bag, new = _opened(client, small, open=True)
                sites = tuple(small.spec.sites)
                opened = OpenBag(bag, small.variables, small.script.body, sites, small.rest())
                write_private(path, msgspec.msgpack.encode(opened))
                return _numbers(bag, new)
            known = newer
    return _numbers(known.bag, tasks)


def _known(path: Path, small: SmallJob) -> OpenBag | None:
    known = remembered(path, OpenBag)
    return known if known is not None and not known.lacking(small) else None


def _appended(
    client: Client, small: SmallJob, known: OpenBag, needs: OwnNeeds | None = None, **links: Any
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


def _awaited(small: SmallJob) -> dict[str, list[Job]]:
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


def _after(client: Client, small: SmallJob, awaited: Mapping[str, list[Job]]) -> list[int]:
    """Append to the bag of the jobs for which it waits: only there can tasks wait for each other."""
    bags = {job.bag for some in awaited.values() for job in some}
    still_open = [bag for bag in bags if _is_open(client, bag)]
    if not still_open:
        links = {kind: tuple({job.bag for job in some}) for kind, some in awaited.items()}
        return _numbers(*_opened(client, small, open=False, **links))
    if len(bags) > 1 or small.alone:
        several = "are in several bags" if len(bags) > 1 else "are in an open bag, and its % asks for its own"
        raise DependencyError(f"the jobs for which it waits {several}")
    bags_known = (known for path in folder().glob("*") if (known := remembered(path, OpenBag)))
    known = next((known for known in bags_known if known.bag == still_open[0]), None)
    if known is None:
        raise DependencyError(
            f"the jobs for which it waits are in bag {still_open[0]}, which no sbatch has opened"
        )
    differs = known.why_not(small)
    if differs:
        raise DependencyError(f"the jobs for which it waits have {differs}")
    tasks = {kind: tuple(job.task for job in some) for kind, some in awaited.items()}
    numbers = _appended(client, small, known, small.needs(), **tasks)
    if numbers is None:
        raise DependencyError(f"bag {known.bag} of the jobs for which it waits has just closed; try again")
    return _numbers(known.bag, numbers)
