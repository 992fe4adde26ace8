"""Tasks of several sizes in one bag: each gets its part, and more memory if it runs out."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.lab import Lab

LOCAL = """
    sites:
      here:
        backend: local
        processors: 4
        limits: {max_pending_requests: 4, max_proc: 4, max_tr: 1h}
        idle_timeout: 5
"""
HOLDS = """\
import os, time
x = bytearray(150_000_000)
if os.environ["ADAPTOR_ATTEMPT"] == "1":
    time.sleep(600)  # until it is ended
"""


def test_tasks_of_many_sizes_run_in_one_bag(lab: Lab) -> None:
    lab.configure(LOCAL)
    tasks: list[dict[str, object]] = [
        *({"command": "echo $ADAPTOR_CPUS", "name": "small"} for _ in range(6)),
        {"command": "echo $ADAPTOR_CPUS", "cpus": 4, "name": "wide"},
        {"command": "echo $ADAPTOR_CPUS", "cpus": 64, "name": "impossible"},
        {"argv": ["python3", "-c", HOLDS], "mem": "100M", "time": "1m", "name": "hungry"},
        {"command": "echo $ADAPTOR_CPUS", "cpus": 3, "mem": "1G", "time": "30m", "name": "long"},
    ]
    lab.bag(["", *(json.dumps(task) for task in tasks)], "tasks.jsonl")
    # The nodes are known once the daemon has read the queue.
    lab.bag(["true"], "first.bag")
    lab.submit("first.bag")
    lab.wait(1)
    told = lab.run("submit", "tasks.jsonl", "--on-oom", "2x")
    assert "1 task can never run, and failed at once" in told.stderr
    assert "line 9: no node can run it: here: each needs 64 processors on one node" in told.stderr
    lab.wait(2, expect=3)
    found = lab.results(2)
    assert [task["state"] for task in found] == ["done"] * 7 + ["failed"] + ["done"] * 2
    said = {task["name"]: task for task in found}
    told_cpus = [Path(said[name]["stdout"]).read_text() for name in ("small", "wide", "long")]
    assert told_cpus == ["1\n", "4\n", "3\n"]
    assert (said["hungry"]["attempts"], said["hungry"]["retries"]) == (2, 0)
    assert "task 8 of bag 2 ran out of memory at 100M: again with 200M (on-oom)" in lab.run("why", "2").stdout
