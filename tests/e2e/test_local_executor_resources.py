"""Calls of one executor with different resources: what they hold, find, and wait for."""

from __future__ import annotations

from tests.e2e.lab import Lab
from tests.e2e.test_local_executor import said
from tests.e2e.test_local_mixed_sizes import LOCAL

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
                    most = psutil.virtual_memory().total * 6 // 10  # two of them do not fit
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
