"""A user upgrades the adaptor: what was finished is still there, and what was not goes on."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.e2e.lab import Lab

FIXTURES = Path(__file__).parents[2] / "fixtures" / "journals"
SITE = """
    sites:
      here:
        backend: local
        processors: 4
        limits: {max_pending_requests: 2, max_proc: 2, max_tr: 30m}
        initial_tr: 20
        grace_time: 1
        price: {explicit: 10, donated: 2}
"""


@pytest.fixture
def upgraded(lab: Lab) -> Lab:
    """A state directory whose daemon of the first format was killed; its tasks run in the lab's folder."""
    lab.state.mkdir(mode=0o700)
    shutil.copy(FIXTURES / "format-1.sqlite", lab.state / "journal.sqlite")
    with closing(sqlite3.connect(lab.state / "journal.sqlite", isolation_level=None)) as db:
        for bag, packed in db.execute("SELECT id, spec FROM bag").fetchall():
            spec = msgspec.msgpack.decode(packed)
            spec |= {"cwd": str(lab.work), "output": str(lab.work / f"adaptor-{bag}")}
            db.execute("UPDATE bag SET spec = ? WHERE id = ?", (msgspec.msgpack.encode(spec), bag))
    lab.configure(SITE)
    return lab


def states(lab: Lab) -> list[str]:
    return [str(bag["state"]) for bag in lab.ask("status", "all")["bags"]]


def test_results_before_the_first_start_and_work_after_it(upgraded: Lab) -> None:
    lab = upgraded
    before = (lab.state / "journal.sqlite").read_bytes()
    assert states(lab) == ["done", "running", "cancelled", "running"]
    assert [task["exit_code"] for task in lab.results(1)] == [0, 0, 0]
    assert (lab.state / "journal.sqlite").read_bytes() == before, "reading changes nothing"

    lab.run("daemon", "start")
    lab.wait(4)
    lab.run("cancel", "2")
    assert states(lab) == ["done", "failed", "cancelled", "done"]
    assert [task["exit_code"] for task in lab.results(1)] == [0, 0, 0]
    assert (lab.work / "adaptor-4" / "0.out").read_text() == "later\n"
    new = lab.submit(lab.bag(["echo new"]))
    assert new == 5
    lab.wait(new)
    (line,) = lab.ask("credits", "1")["bags"]
    assert line["used"] > 0, "what the old daemon charged is still charged"
