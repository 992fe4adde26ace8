"""Guard rails on this machine: typos, hung tasks, checkpoints beyond `max_tr`, a pause."""

from __future__ import annotations

from tests.e2e.lab import Lab
from tests.e2e.test_local_trouble import local
from tests.living import until


def test_a_bag_of_typos_pauses_with_a_sentence_and_what_it_wrote(lab: Lab) -> None:
    lab.configure(local())
    lab.bag(["slep 1"] * 2000)
    bag = lab.submit("tasks.bag")
    said = lab.run("watch", "--quiet", str(bag), expect=4).stderr
    assert f"bag {bag} is paused: its first 10 attempts all failed alike" in said
    assert "slep: command not found" in said
    (shown,) = lab.ask("status", str(bag))["bags"]
    assert shown["failed"] <= 12
    assert shown["halted"]
    status = lab.run("status", str(bag)).stdout
    assert "paused" in status
    assert "slep: command not found" in status
    until(lambda: all(pilot["workers"] == 0 for pilot in lab.pilots()), "its workers leave")
    lab.run("cancel", str(bag))
    lab.run("watch", "--quiet", str(bag), expect=3)
    assert sum(task["attempts"] for task in lab.results(bag)) <= 12


def test_a_task_that_checkpoints_finishes_beyond_max_tr(lab: Lab) -> None:
    """It works for more than twice as long as one request can give: 4 s of 14, the end is told 5 s before."""
    lab.configure(local((2, 2, "14s"), initial_tr=6, pad=8))
    work = lab.work / "work"
    lab.bag(
        [
            f"trap 'exit 75' USR1; touch {work}; while [ $(wc -c < {work}) -lt 18 ]; "
            f"do sleep 0.5; printf x >> {work}; done"
        ]
    )
    lab.submit("tasks.bag", "--requeue-on", "75", "--signal", "USR1@5", "--time", "1m")
    lab.wait(1)
    (slow,) = lab.results()
    assert slow["state"] == "done"
    assert slow["retries"] == 0
    assert lab.ask("report", "1")["totals"]["used"] >= 8.5, "what was worked before a checkpoint counts"
    lab.run("daemon", "stop")
    ends = [attempt["outcome"] for attempt in lab.attempts(1, [0])]
    assert ends.count("requeued") >= 2
    assert set(ends) == {"requeued", "done"}
    assert work.stat().st_size >= 18


def test_a_pause_and_a_hung_task(lab: Lab) -> None:
    lab.configure(local())
    begun = lab.work / "begun"
    lab.bag([f"touch {begun}; {lab.hold()}", "true", "true"])
    held = lab.submit("tasks.bag", "--max-running", "1")
    until(begun.exists, "the first task runs")
    lab.run("pause", str(held))
    assert "its user has paused it" in lab.run("status", str(held)).stdout
    lab.release()
    until(lambda: lab.status(held)["done"] == 1, "what runs goes on to its end")
    lab.bag(["sleep 300", "true"], "hung.bag")
    hung = lab.submit("hung.bag", "--timeout", "6s")
    lab.wait(hung, expect=3)
    late, quick = lab.results(hung)
    assert late["error"] == "time-out after 6s"
    assert quick["state"] == "done"
    assert lab.status(held)["waiting"] == 2, "other bags have run, and this one has not"
    assert "changed" in lab.run("change", str(held), "--priority", "3").stdout
    assert "resumed" in lab.run("resume", str(held)).stdout
    lab.wait(held)
