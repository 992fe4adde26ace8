"""One bag on this machine from the first command to the last: what `make quick` runs of the whole."""

from __future__ import annotations

from pathlib import Path

import psutil

from adaptor.daemon.process import NAME
from tests.e2e.lab import Lab, exactly_one_result_each, site


def test_a_bag_runs_to_its_end_and_says_what_it_took(lab: Lab) -> None:
    lab.configure(site("local", (2, 2, "1h"), processors=2))
    lab.bag(f"echo {number}" for number in range(20))
    lab.run("daemon", "start")
    assert psutil.Process(lab.ask("status", "--daemon")["pid"]).name() == NAME, "ps -C shows who has a daemon"
    lab.run("run", "tasks.bag")
    exactly_one_result_each(lab, 1, 20)
    assert [Path(task["stdout"]).read_text() for task in lab.results()] == [f"{n}\n" for n in range(20)]
    assert lab.status()["done"] == 20
    assert lab.ask("report", "1")["requests"]
