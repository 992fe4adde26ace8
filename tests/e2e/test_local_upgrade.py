"""A user upgrades the adaptor: what was finished is still there, and what was not goes on."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import adaptor
import backends
from adaptor import __version__, api
from adaptor.processes.identity import host
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

STATES = sorted(path.parent for path in Path(__file__).parents[2].glob("fixtures/states/*/journal.sqlite"))
"""The state directory that each release has recorded."""
SITE = site(
    "local", (2, 2, "30m"), processors=4, initial_tr=20, grace_time=1, price={"explicit": 10, "donated": 2}
)


@pytest.fixture(params=STATES, ids=lambda path: path.name)
def upgraded(lab: Lab, request: pytest.FixtureRequest) -> Lab:
    """The state directory of a release whose daemon was killed; its tasks run in the lab's folder."""
    shutil.copytree(request.param, lab.state)
    for note in lab.state.glob("sites/*/*.json"):  # this machine has been started anew since
        note.write_text(note.read_text().replace('"node-1"', json.dumps(host())))
    for path in (lab.state, *lab.state.rglob("*")):  # git keeps no modes
        path.chmod(0o700 if path.is_dir() else 0o600)
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
    keys = (lab.state / "keys.json").read_bytes()

    lab.run("daemon", "start")
    assert (lab.state / "keys.json").read_bytes() == keys, "workers of the release know these"
    assert "damaged" not in lab.log(), "the notes of its local jobs are understood"
    assert "reader" in lab.run("mcp", "keys").stdout
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


ANY_SITE = site("local", (2, 2, "1h"), processors=4, initial_tr=60, grace_time=1)
OTHER = "0.0.9+another"


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """Another one: a copy of this one with another version, whose messages have another shape."""
    folder = tmp_path / "another"
    for package in (adaptor, backends):
        source = Path(package.__path__[0])
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "adaptor" / "_version.py").write_text(f"__version__ = {OTHER!r}\n")
    question = folder / "adaptor" / "api" / "question.py"
    text = question.read_text(encoding="utf-8")
    assert api.PROTOCOL in text
    question.write_text(text.replace(api.PROTOCOL, "0-another"), encoding="utf-8")
    return folder


@pytest.mark.parametrize("ours_is_newer", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_the_next_version_goes_on_with_the_pilots_of_the_last_one(
    lab: Lab, installation: Path, monkeypatch: pytest.MonkeyPatch, ours_is_newer: bool
) -> None:
    lab.configure(ANY_SITE)
    order = [str(installation), ""] if ours_is_newer else ["", str(installation)]
    last, following = (OTHER, __version__) if ours_is_newer else (__version__, OTHER)
    monkeypatch.setenv("PYTHONPATH", order[0])
    lab.bag([*(f"echo {number}" for number in range(20)), *([lab.hold()] * 4), *(["sleep 0.1"] * 40)])
    lab.run("submit", "tasks.bag", "--output-files", "packed")

    def running() -> int:
        return int(json.loads(lab.run("status", "1", "--json").stdout)["bags"][0]["running"])

    until(lambda: running() == 4, "the tasks that last run")

    monkeypatch.setenv("PYTHONPATH", order[1])
    lab.config = None  # the next daemon knows it from the last one
    refused = lab.run("results", "1", expect=1).stderr
    assert f"has version {last}; this command of version {following} can only show" in refused
    assert f"version {last}, " in lab.run("status", "--daemon").stdout
    restarted = lab.run("daemon", "restart").stdout
    assert restarted.startswith("restarted: daemon on ")
    assert "site.yaml" in restarted
    assert f"version {following}, " in lab.run("status", "--daemon").stdout

    lab.release()
    lab.run("watch", "--quiet", "1")
    lab.run("daemon", "stop")
    monkeypatch.setenv("PYTHONPATH", "")
    exactly_one_result_each(lab, 1, 64)
    ended = {attempt["outcome"] for attempt in lab.attempts(1, list(range(64)))}
    assert ended <= {"done", "returned", "superseded"}, "the workers went on"
    assert "cannot be decoded" not in lab.log()


def test_a_restart_ends_nothing_where_this_version_cannot_go_on(lab: Lab) -> None:
    lab.configure(ANY_SITE)
    lab.run("daemon", "start")
    pid = lab.ask("status", "--daemon")["pid"]
    note = next((lab.state / "sites").iterdir()) / "7.job.json"
    note.write_text(json.dumps({"format": 2}))
    refused = lab.run("daemon", "restart", expect=1).stderr
    assert f"{note}: has format 2, written by a newer version" in refused
    assert "Nothing was stopped" in refused
    assert lab.ask("status", "--daemon")["pid"] == pid
