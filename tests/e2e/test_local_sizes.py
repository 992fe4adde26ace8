"""Tasks and calls of several sizes: each gets its part, waits for what it needs, or fails at once."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.lab import Lab, site
from tests.e2e.test_local_executor import said

LOCAL = site("local", (4, 4, "1h"), processors=4, idle_timeout=5)
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
    assert "tasks.jsonl:9: no node can run it: here: each needs 64 processors on one node" in told.stderr
    lab.wait(2, expect=3)
    found = lab.results(2)
    assert [task["state"] for task in found] == ["done"] * 7 + ["failed"] + ["done"] * 2
    said = {task["name"]: task for task in found}
    told_cpus = [Path(said[name]["stdout"]).read_text() for name in ("small", "wide", "long")]
    assert told_cpus == ["1\n", "4\n", "3\n"]
    assert (said["hungry"]["attempts"], said["hungry"]["retries"]) == (2, 0)
    assert "task 8 of bag 2 ran out of memory at 100M: again with 200M (on-oom)" in lab.run("why", "2").stdout


CROWD = """\
import os, pathlib, time

def crowd(folder, until, patience=1000.0):
    # The calls that run at the same time, once there are as many, or have been, or none came.
    end = time.monotonic() + patience
    here, been = pathlib.Path(folder), pathlib.Path(folder + ".been")
    here.mkdir(exist_ok=True)
    mine = here / os.environ["ADAPTOR_TASK_ID"]
    mine.touch()
    while (count := len(os.listdir(here))) < until and not been.exists() and time.monotonic() < end:
        time.sleep(0.02)
    if count >= until:
        been.touch()
    count = max(count, len(os.listdir(here)))
    mine.unlink()
    return count, os.environ["ADAPTOR_CPUS"], os.environ.get("WORD")
"""


def test_calls_hold_what_they_say_and_the_others_what_the_executor_says(lab: Lab) -> None:
    lab.configure(LOCAL)
    (lab.work / "crowds.py").write_text(CROWD)
    out = said(
        lab.program("""
            import adaptor, crowds, psutil

            if __name__ == "__main__":
                with adaptor.Executor(time="1m") as executor:
                    wide = executor.with_resources(cpus=2, env={"WORD": "wide"})
                    print(max(wide.map(crowds.crowd, ["wide"] * 8, [2] * 8)))
                    print(executor.submit(crowds.crowd, "one", 1).result())
                    most = f"{psutil.virtual_memory().total * 6 // 10}B"  # two of them do not fit
                    large = executor.with_resources(mem=most)
                    print(max(large.map(crowds.crowd, ["large"] * 4, [2] * 4, [0.5] * 4)))
                    needs = {"cpus": 4, "env": {"WORD": "whole"}}
                    print(executor.submit(crowds.crowd, "whole", 1, adaptor_resources=needs).result())
                    print(executor.submit(abs, -1, adaptor_resources={"cpus": 64}).exception())
                    print(executor.submit(abs, -1, adaptor_resources={"mem": "900T"}).exception())
                    print(executor.submit(abs, -1).result())
        """)
    )
    *found, processors, memory, last = out.splitlines()
    assert found == ["(2, '2', 'wide')", "(1, '1', None)", "(1, '1', None)", "(1, '4', 'whole')"]
    assert processors.startswith("bag 1, task 14: the call has no result: no node can run it: here: ")
    assert "64 processors" in processors
    assert "each needs 921600G on one node" in memory
    assert last == "1"
    assert {task["command"] for task in lab.results()} >= {"crowds.crowd()"}


def test_a_limit_of_workers_is_that_of_all_views(lab: Lab) -> None:
    lab.configure(LOCAL)
    (lab.work / "crowds.py").write_text(CROWD)
    out = said(
        lab.program("""
            import adaptor, crowds

            if __name__ == "__main__":
                with adaptor.Executor(2, time="1m") as executor:
                    wide = executor.with_resources(cpus=2)
                    futures = [
                        each.submit(crowds.crowd, "all", 2) for _ in range(5) for each in (executor, wide)
                    ]
                    print(max(future.result()[0] for future in futures))
        """)
    )
    assert out.split() == ["2"]
