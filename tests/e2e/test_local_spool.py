"""A site whose workers have no route to the daemon: everything passes through a spool."""

from __future__ import annotations

from pathlib import Path

import psutil

from adaptor.protocol.access import read_access, worker_access
from tests.e2e.lab import Lab, exactly_one_result_each, until

HERE = """
    sites:
      here:
        backend: local
        spool: {spool}
        processors: 3
        limits: {{max_pending_requests: 2, max_proc: 2, max_tr: 1h}}
        idle_timeout: 5
"""


def workers_of(lab: Lab) -> list[psutil.Process]:
    """The worker processes of this lab's pilots."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "adaptor.worker" in (process.info["cmdline"] or []):
            try:
                if process.environ().get("ADAPTOR_DIRECTORY", "").startswith(str(lab.state)):
                    found.append(process)
            except psutil.Error:
                continue
    return found


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if not path.is_dir()]


def test_a_bag_runs_through_a_spool_although_the_daemon_is_killed(lab: Lab) -> None:
    spool = lab.root / "spool"
    lab.configure(HERE.format(spool=spool))
    lab.bag("sleep 0.3; echo $ADAPTOR_TASK_ID >> runs" for _ in range(60))
    lab.submit("tasks.bag")
    until(lambda: lab.status()["done"] >= 10, "the bag is under way")
    (address,) = read_access(lab.state / worker_access("here")).addresses
    assert address.startswith(f"spool://{spool}/"), "no port is told to anybody"
    workers = workers_of(lab)
    assert workers
    assert not [link for worker in workers for link in worker.net_connections()]
    lab.kill_daemon()
    lab.run("daemon", "start")
    lab.wait()
    exactly_one_result_each(lab, 1, 60)
    runs = (lab.work / "runs").read_text(encoding="utf-8").split()
    assert sorted(map(int, runs)) == list(range(60)), "each task ran once"
    until(lambda: not workers_of(lab), "the workers have left", timeout=30)
    until(lambda: not files_in(spool), "all files were read", timeout=30)
    modes = {path.stat().st_mode & 0o777 for path in spool.rglob("*")}
    assert modes <= {0o700}
