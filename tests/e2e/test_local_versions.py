"""An upgrade under way: the daemon of another installation runs bags, and the next one goes on with them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import adaptor
import backends
from adaptor import __version__, api
from tests.e2e.lab import Lab, exactly_one_result_each, until

SITE = """
    sites:
      here:
        backend: local
        processors: 4
        limits: {max_pending_requests: 2, max_proc: 2, max_tr: 1h}
        initial_tr: 60
        grace_time: 1
"""
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
    lab.configure(SITE)
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
