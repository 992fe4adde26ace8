"""A site whose workers have no route to the daemon: everything passes through a spool."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from adaptor.protocol.access import read_access, worker_access
from tests.e2e.lab import Lab, exactly_one_result_each, found_below, site
from tests.e2e.test_local_crashes import workers_of
from tests.living import until


def only_folders(spool: Path) -> list[os.stat_result]:
    """Those in the spool; none while there is anything else in it."""
    found = [status for _, status in found_below(spool)]
    return found if all(stat.S_ISDIR(status.st_mode) for status in found) else []


def test_a_bag_runs_through_a_spool_although_the_daemon_is_killed(lab: Lab) -> None:
    spool = lab.root / "spool"
    configuration = site("local", (2, 2, "1h"), spool=str(spool), processors=3, idle_timeout=5)
    lab.begin(
        configuration, [f"{lab.hold_after(20)}; sleep 0.3; echo $ADAPTOR_TASK_ID >> runs"] * 60, done=10
    )
    (address,) = read_access(lab.state / worker_access("here")).addresses
    assert address.startswith(f"spool://{spool}/"), "no port is told to anybody"
    workers = workers_of(lab)
    assert workers
    assert not [link for worker in workers for link in worker.net_connections()]
    lab.kill_daemon()
    lab.release()
    lab.run("daemon", "start")
    lab.wait()
    exactly_one_result_each(lab, 1, 60)
    runs = (lab.work / "runs").read_text(encoding="utf-8").split()
    assert sorted(map(int, runs)) == list(range(60)), "each task ran once"
    until(lambda: not workers_of(lab), "the workers have left")
    folders = until(lambda: only_folders(spool), "all files were read")
    assert {status.st_mode & 0o777 for status in folders} == {0o700}
