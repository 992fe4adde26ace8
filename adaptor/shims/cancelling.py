"""Cancelling by `scancel`: tasks are cancelled, and the real command gets the rest."""

from __future__ import annotations

import getpass
import os
import sys
from collections import defaultdict
from pathlib import Path

from adaptor import api
from adaptor.errors import NoDaemonError
from adaptor.shims.asking import understood
from adaptor.shims.connecting import connected
from adaptor.shims.jobs import ACTIVE, Jobs
from adaptor.shims.options import Asked
from adaptor.shims.real import asked, found, pass_on, tell

_ENDING = ("KILL", "SIGKILL", "9", "TERM", "SIGTERM", "15")


def scancel(arguments: list[str], _folder: Path) -> int:
    wanted = understood("scancel", arguments)
    chooses = wanted.has("name", "jobname", "user", "me", "state")
    if not wanted.for_ours or not (wanted.by_id or chooses):
        pass_on("scancel", arguments)
    signal = wanted.value("signal")
    if signal is not None and signal.upper() not in _ENDING:
        if wanted.by_id and not wanted.other_ids:
            tell(f"--signal={signal}: tasks of a bag get no signals; nothing is done")
            return 1
        tell(f"--signal={signal}: tasks of a bag get no signals")
    else:
        _cancel(wanted)
    if not wanted.for_scheduler or found("scancel") is None:
        return 0
    return asked("scancel", [*(word for word in wanted.words() if "--jobs=" not in word), *wanted.other_ids])[
        1
    ]


def _cancel(wanted: Asked) -> None:
    """Cancel our jobs that the arguments choose and that have not ended."""
    jobs, user, uid = Jobs(), getpass.getuser(), os.getuid()
    found = jobs.of(wanted.ids) if wanted.by_id else list(jobs.all(ended=False))
    if wanted.by_id and not found:
        print("scancel: error: Invalid job id specified", file=sys.stderr)
    by_bag: dict[int, list[int]] = defaultdict(list)
    for job in found:
        if job.state in ACTIVE and wanted.chooses(job, user, uid):
            by_bag[job.bag].append(job.task)
            if wanted.has("verbose"):
                print(f"scancel: Terminating job {job.id}", file=sys.stderr)
    if not by_bag:
        return
    try:
        with connected() as client:
            for bag, tasks in by_bag.items():
                client.ask(api.Cancel([bag], tasks))
    except NoDaemonError:
        raise NoDaemonError("no daemon runs that could cancel jobs: adaptor daemon start") from None
