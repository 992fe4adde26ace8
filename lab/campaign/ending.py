"""After a bag has ended: is anything left, and is all that was said of it true?"""

from __future__ import annotations

import re
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing

from lab.campaign.credits import check_credits
from lab.campaign.plan import Plan
from lab.campaign.verifying import Finding, Told, Wrong, check_bag, forgotten
from lab.campaign.world import BAG, World, words
from tests.clusters.throwaway import ClusterError

PATIENCE = 400.0
"""Seconds until all pilots have left: one without workers may stay until its walltime."""
_OWN_ERRORS = re.compile(r"Traceback|internal error|a step of site")


def check_end(plan: Plan, world: World) -> Iterator[Finding]:
    """All findings; stops the daemon."""
    yield from _nobody_waits(world)
    yield from (
        Finding(Wrong.LEAKED, f"job {job} is left in the queue") for job in _left(lambda: _jobs(world))
    )
    for pilot in _left(lambda: _pilots(world)):
        yield Finding(Wrong.LEAKED, f"pilot {pilot} is left in the journal")
    for cluster in world.sites:
        for job in cluster.touched():
            yield Finding(
                Wrong.TOUCHED, f"{cluster.name}: job {job} of the user's own does not wait any more"
            )
    results = world.lab.results(BAG)
    world.forget_daemon()
    world.lab.run("daemon", "stop")
    for process in _left(lambda: [f"{each.pid} {' '.join(words(each))}" for each in world.ours()]):
        yield Finding(Wrong.LEAKED, f"process {process} lives on")
    attempts = world.lab.attempts(BAG, list(range(len(plan.tasks))))
    effects = world.effects.all()
    yield from check_bag(plan, Told(results, attempts), effects, world.killed, forgotten(effects, world.cuts))
    records = [held for cluster in world.sites for held in cluster.records()]
    if not records:
        yield Finding(Wrong.OTHER, "the scheduler has no record of any pilot")
    yield from check_credits(world.lab.state / "journal.sqlite", records, world.rewound)
    yield from (Finding(Wrong.OTHER, trouble) for trouble in world.troubles)
    yield from _journal_is_whole(world)
    yield from _log_is_clean(world)


def _nobody_waits(world: World) -> Iterator[Finding]:
    if world.local_jobs is None:
        return
    for name in _left(world.local_jobs.waiting):
        yield Finding(Wrong.OTHER, f"the local job {name} has not run")
    for line in world.local_jobs.disturbed():
        yield Finding(Wrong.LEAKED, line)


def _jobs(world: World) -> list[str]:
    return [str(job) for cluster in world.sites for job in cluster.queue()]


def _pilots(world: World) -> list[str]:
    running = ("submitting", "queued", "running")
    return [f"{each['id']} ({each['state']})" for each in world.lab.pilots() if each["state"] in running]


def _left(look: Callable[[], list[str]]) -> list[str]:
    """Things that are still there when the patience ends."""
    deadline = time.monotonic() + PATIENCE
    while found := _seen(look):
        if time.monotonic() > deadline:
            return found
        time.sleep(1)
    return []


def _seen(look: Callable[[], list[str]]) -> list[str]:
    try:
        return look()
    except (ClusterError, subprocess.TimeoutExpired) as error:
        return [f"(nobody knows: {error})"]


def _journal_is_whole(world: World) -> Iterator[Finding]:
    with closing(sqlite3.connect(world.lab.state / "journal.sqlite")) as db:
        (answer,) = db.execute("PRAGMA integrity_check").fetchone()
    if answer != "ok":
        yield Finding(Wrong.OTHER, f"integrity_check: {answer}")


def _log_is_clean(world: World) -> Iterator[Finding]:
    for path in sorted(world.lab.state.glob("daemon.*")):
        if path.name.startswith(("daemon.log", "daemon.err")):
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                if _OWN_ERRORS.search(line):
                    yield Finding(Wrong.OTHER, f"{path.name}: {line}")
