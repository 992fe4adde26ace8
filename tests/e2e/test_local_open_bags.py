"""A bag that gets its tasks as they come, through the real daemon and real workers, over `kill -9`."""

from __future__ import annotations

import signal
import threading

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.client.bags import Client
from tests.e2e.lab import LONG, Lab, exactly_one_result_each, site
from tests.living import until


def test_an_open_bag_is_fed_and_followed_over_a_crash(lab: Lab) -> None:
    lab.configure(site("local", processors=2, initial_tr="5m", pad="5s", idle_timeout="1s"))
    lab.run("daemon", "start")
    spec = BagSpec(name="fed", cwd=str(lab.work), output=str(lab.work / "out"), environment={})
    seen: list[int] = []
    with Client(lab.state) as client:
        bag = client.open_bag(spec, [TaskInput("echo 0")])
        follower = threading.Thread(
            target=lambda: [seen.append(task.task) for told in client.follow(bag) for task in told.tasks]
        )
        follower.start()
        until(lambda: seen, "the first task has a result")
        lab.kill_daemon()
        threading.Timer(0.5, lambda: lab.run("daemon", "start")).start()
        assert client.append(bag, [TaskInput(f"echo {number}") for number in range(1, 11)]) == [*range(1, 11)]
        until(lambda: len(seen) == 11, "all have results")
        assert lab.status(bag)["state"] == "open"
        until(lambda: all(pilot["ended"] for pilot in lab.pilots()), "the idle pilot leaves")
        assert (lab.ask("append", str(bag), lab.bag(["echo 11"])))["tasks"] == [11]
        lab.run("append", str(bag), "--close")
        lab.wait(bag)
        follower.join(LONG)
    assert sorted(seen) == list(range(12))
    exactly_one_result_each(lab, bag, 12)
    assert (lab.work / "out" / "11.out").read_text() == "11\n"


def test_an_open_bag_closes_once_it_is_idle(lab: Lab) -> None:
    lab.configure("sites: {here: {backend: local, processors: 1, initial_tr: 5m, idle_timeout: 1s}}")
    lab.run("daemon", "start")
    spec = BagSpec(
        name="fed", cwd=str(lab.work), output=str(lab.work / "out"), environment={}, close_idle=1.0
    )
    with Client(lab.state) as client:
        bag = client.open_bag(spec, [TaskInput(lab.hold())])
        assert lab.status(bag)["open"], "a task is unfinished"
        lab.release()
        until(lambda: not lab.status(bag)["open"], "it closes")
        assert lab.status(bag)["state"] == "done"


def test_a_submission_that_is_killed_midway_leaves_no_bag_and_the_next_runs_alone(lab: Lab) -> None:
    lab.configure(site("local", processors=2, initial_tr="5m", pad="5s", idle_timeout="1s"))
    lab.run("daemon", "start")

    def written() -> int:
        return sum(path.stat().st_size for path in lab.state.glob("journal.sqlite*"))

    before = written()
    killed = lab.start("submit", lab.bag(["touch never"] * 300_000))
    until(lambda: written() > before + 2**19, "some thousand tasks are written")
    killed.kill()
    assert killed.wait(LONG) == -signal.SIGKILL
    assert lab.ask("status", "all")["bags"] == []
    bag = lab.submit(lab.bag(["true"] * 3, "next.bag"))
    lab.wait(bag)
    lab.kill_daemon()
    lab.run("daemon", "start")
    assert [each["id"] for each in lab.ask("status", "all")["bags"]] == [bag]
    exactly_one_result_each(lab, bag, 3)
    assert not (lab.work / "never").exists()
