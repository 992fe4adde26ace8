"""Tasks that misbehave, a disk that is full, a walltime that is met."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from adaptor.decisions.pilot_rules import UNREACHED
from tests.e2e.lab import Lab, exactly_one_result_each, keys_of, site, sites
from tests.living import until


def local(limits: tuple[int, int, str] = (2, 2, "1h"), **keys: object) -> str:
    return site("local", limits, processors=2, **keys)


def test_tasks_that_fail_each_in_their_own_way(lab: Lab) -> None:
    lab.configure(local())
    lab.bag(
        [
            "#ADAPTOR retries=1",
            "echo fine",
            "exit 7",
            "kill -9 $$",
            "/no/such/program",
            "head -c 100000000 /dev/zero",
            "setsid sleep 300 & echo left a child behind",
        ]
    )
    lab.run("run", "tasks.bag", expect=3)
    tasks = lab.results()
    assert [task["state"] for task in tasks] == ["done", "failed", "failed", "failed", "done", "done"]
    assert [task["attempts"] for task in tasks] == [1, 2, 2, 1, 1, 1]
    assert tasks[1]["exit_code"] == 7
    assert tasks[2]["signal"] == 9
    assert tasks[3]["exit_code"] == 127
    assert Path(tasks[4]["stdout"]).stat().st_size == 100_000_000
    until(lambda: not sleepers(lab), "the child that was left behind is ended")


def sleepers(lab: Lab) -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline", "cwd"])
    return [p for p in found if p.info["cmdline"] == ["sleep", "300"] and p.info["cwd"] == str(lab.work)]


def test_the_walltime_is_met_tr_grows_and_nothing_is_charged(lab: Lab) -> None:
    lab.configure(local((1, 2, "1h"), heuristic="adaptive", initial_tr=2, pad=6, growth_factor=3))
    lab.bag(["sleep 7"] * 2)
    lab.run("run", "tasks.bag")
    exactly_one_result_each(lab, 1, 2)
    asked = [request["tr"] for request in lab.ask("report", "1")["requests"]]
    assert asked[0] == 8
    # A busy machine may let some end before their tasks begin; the pad then grows too, by less.
    assert max(longer - before for before, longer in pairwise(asked)) >= (3 - 1) * 2


def test_a_task_longer_than_any_request_is_told_and_not_tried_for_ever(lab: Lab) -> None:
    lab.configure(local((1, 2, "10s"), initial_tr=4, pad=6))
    lab.bag(["sleep 60", "true"])
    lab.run("run", "tasks.bag", expect=3)
    slow, quick = lab.results()
    assert quick["state"] == "done"
    assert slow["state"] == "failed"
    assert "max_tr" in slow["error"]
    assert slow["retries"] == 0


def test_a_full_disk_loses_nothing(lab: Lab) -> None:
    lab.begin(local(), [lab.hold_after(4)] * 40, done=3)
    daemon = psutil.Process(lab.daemon_pid())
    unlimited = daemon.rlimit(psutil.RLIMIT_FSIZE)
    daemon.rlimit(psutil.RLIMIT_FSIZE, (4096, unlimited[1]))  # every write beyond 4 KiB fails
    lab.release()
    until(lambda: lab.ask("status", "--daemon")["stalled"], "the daemon says that it cannot write")
    told = lab.run("submit", "tasks.bag", expect=1).stderr
    assert "journal" in told
    daemon.rlimit(psutil.RLIMIT_FSIZE, unlimited)
    lab.wait()
    exactly_one_result_each(lab, 1, 40)
    assert lab.ask("status", "--daemon")["stalled"] == ""


def test_two_bags_share_and_bags_can_be_cancelled_and_retried(lab: Lab) -> None:
    lab.configure(local())
    lab.bag([f"{lab.hold('both')}; {lab.hold_after(20)}; sleep 0.4"] * 30, "first.bag")
    lab.bag(["sleep 0.4"] * 6, "second.bag")
    first, second = lab.submit("first.bag"), lab.submit("second.bag")
    lab.release("both")
    lab.wait(second)
    assert lab.status(first)["done"] <= 20, "the second bag did not wait for the first"
    lab.run("cancel", str(first))
    assert lab.status(first)["state"] == "cancelled"
    lab.run("watch", "--quiet", str(first), expect=3)
    lab.run("retry", str(first))
    lab.release()
    lab.wait(first)
    assert lab.status(first)["done"] == 30


def test_why_explains_that_nothing_can_be_submitted_and_an_idle_daemon_holds_nothing(lab: Lab) -> None:
    lab.configure(local((1, 1, "1h")))
    lab.bag(["sleep 1"] * 4)
    lab.submit("tasks.bag")

    def withheld() -> list[str]:
        return [line["text"] for line in lab.ask("why", "1") if line["kind"] == "withheld"]

    (text, *_) = until(withheld, "a reason is given")
    assert "pilot 1" in text
    lab.wait()
    until(lambda: all(pilot["ended"] for pilot in lab.pilots()), "all pilots have left")
    before = len(lab.pilots())
    until(lambda: lab.ask("status", "--sites"), "the daemon answers")
    assert len(lab.pilots()) == before


def test_a_site_that_cannot_be_reached_leaves_the_bag_to_the_others(lab: Lab) -> None:
    far = {"backend": "slurm", "ssh": {"host": "nowhere.invalid"}}
    lab.configure(sites({"here": keys_of("local", (2, 2, "1h"), processors=2), "far": far}))
    lab.bag(["true"] * 4)
    lab.run("run", "tasks.bag")
    exactly_one_result_each(lab, 1, 4)
    assert {request["site"] for request in lab.ask("report", "1")["requests"]} == {"here"}


ELSEWHERE = """
(umask 077; sed 's#"addresses": *[[][^]]*[]]#"addresses":["tcp://127.0.0.1:9"]#' \
    "$ADAPTOR_ACCESS" > "$ADAPTOR_DIRECTORY/access.json")
export ADAPTOR_ACCESS="$ADAPTOR_DIRECTORY/access.json"
"""
"""A prologue after which a worker calls where nobody listens: the daemon would mend its own access file."""


@pytest.mark.nightly
def test_workers_that_cannot_reach_the_daemon_are_told_of_within_a_minute(lab: Lab) -> None:
    lab.configure(site("local", (1, 1, "1h"), prologue=ELSEWHERE))
    lab.bag(["true"])
    lab.submit("tasks.bag")

    def said() -> list[str]:
        return [line["text"] for line in lab.ask("why", "--pilot", "1") if "reach" in line["text"]]

    (text, *_) = until(said, "the daemon says that nobody has reached it")
    assert UNREACHED <= 45, "with the start of the pilot, a minute"
    assert "tcp://127.0.0.1:9" in text or "open from the nodes" in text


LOCAL = site("local", (2, 4, "1h"), processors=4, idle_timeout=5, daemon={"worker_timeout": 20})


def test_a_task_that_ends_its_worker_fails_and_the_others_are_done(lab: Lab) -> None:
    """By SIGTERM; on a real Slurm it is SIGKILL."""
    lab.configure(LOCAL)
    lab.bag(["kill -TERM $PPID; sleep 5", *["sleep 1"] * 19])
    lab.submit("tasks.bag")
    lab.wait(expect=3)
    found = lab.results()
    assert [task["state"] for task in found] == ["failed"] + ["done"] * 19
    assert found[0]["error"].startswith("its worker died under it 3 times (last: node ")
    assert "not tried again; adaptor retry 1" in found[0]["error"]
    assert found[0]["attempts"] <= 6
    assert not any(task["retries"] for task in found)
    assert len(lab.pilots()) <= 12


@pytest.mark.nightly
def test_a_stopped_worker_is_no_capacity_and_why_names_it(lab: Lab) -> None:
    """Its pilot is the only one that the limits allow."""
    lab.configure(site("local", (1, 1, "1h"), processors=1, idle_timeout=5, daemon={"worker_timeout": 5}))
    lab.submit(lab.bag([lab.hold(), "echo after"]))
    until(lambda: lab.ask("status", "1")["bags"][0]["running"] == 1, "a task runs")
    (worker,) = [
        process
        for process in psutil.process_iter(["environ", "cmdline"])
        if (process.info["environ"] or {}).get("ADAPTOR_DIRECTORY") == str(lab.state / "pilots" / "1")
        and "adaptor.worker" in (process.info["cmdline"] or [])
    ]
    worker.suspend()
    until(lambda: "hangs or was stopped" in lab.run("why", "1").stdout, "why names it")
    lab.release()
    lab.wait(1)
    assert "none of its workers has answered" in lab.run("why", "1").stdout
    exactly_one_result_each(lab, 1, 2)
