"""Each problem of a node is named with its way out."""

from __future__ import annotations

from typing import Any

import pytest

from adaptor import __version__
from adaptor.daemon.trial.judging import NodeAnswer, Trial, judge
from adaptor.reports import JobReport, JobState
from adaptor.shortfalls import Shortfall


def told(**changes: Any) -> NodeAnswer:
    fields: dict[str, Any] = {
        "node": "n1",
        "python": "3.11.2",
        "executable": "/usr/bin/python3",
        "version": __version__,
        "problem": "",
        "reached": ["tcp://login:5"],
        "processors": 2,
        "bound": True,
        "memory_asked": True,
        "memory": 64 << 30,
        "memory_limit": 4 << 30,
        "shortfalls": (),
        "spool": "",
        "time": 100.0,
    }
    return NodeAnswer(**{**fields, **changes})


def trial(**changes: Any) -> Trial:
    fields: dict[str, Any] = {
        "job": "12",
        "folder": "/state/check-1",
        "python": "python3",
        "addresses": ("tcp://login:5",),
        "daemon_runs": True,
        "spool": "",
        "nodes": 1,
        "told": [told()],
        "called": True,
        "skews": {"n1": 0.1},
        "report": JobReport(id="12", tag="t", state=JobState.COMPLETED, start=1.0, end=3.0),
        "words": "",
    }
    return Trial(**{**fields, **changes})


def test_all_is_well() -> None:
    found = judge(trial())
    assert {finding.level for finding in found} == {"ok"}
    assert any("limits the memory of this job on n1 to 4G" in finding.text for finding in found)


@pytest.mark.parametrize(
    ("given", "level", "text"),
    [
        (trial(told=[], called=True), "error", "on a file system that the nodes share ($ADAPTOR_DIR)"),
        (trial(told=[], called=False, words="python3: not found"), "error", "python3: not found. Does"),
        (trial(told=[], called=False), "error", "or the nodes do not see that folder"),
        (trial(told=[told(problem="No module named msgspec")]), "error", "install the adaptor for python3"),
        (trial(told=[told(version="0.0")]), "error", "install the same version on both"),
        (trial(told=[told(reached=[])]), "error", "set `daemon.host`"),
        (trial(addresses=()), "warning", "adaptor daemon start"),
        (
            trial(spool="/s", told=[told(spool="No such file or directory")]),
            "error",
            "`spool` must be a folder",
        ),
        (trial(skews={"n1": -400.0}), "warning", "6m 40s behind this machine's"),
        (trial(skews={"n1": 90.0}), "warning", "ahead of this machine's"),
        (trial(skews={}), "warning", "was not compared"),
        (trial(told=[told(memory_limit=None)]), "warning", "ConstrainRAMSpace"),
        (
            trial(told=[told(memory_asked=False, memory_limit=256 << 20)]),
            "warning",
            "jobs that ask for no memory get 256M on n1, all tasks together: use --mem",
        ),
        (
            trial(told=[told(memory_asked=False, memory_limit=63 << 30)]),
            "ok",
            "limits the memory of this job",
        ),
        (
            trial(told=[told(), told(node="n2", shortfalls=(Shortfall("processors", 2, 1, "affinity"),))]),
            "error",
            "n2 gave 1 of 2 processors (affinity): tasks use only these, and the rest is paid for and idle",
        ),
        (trial(nodes=2), "error", "was to run on 2 nodes, but only n1 answered"),
        (trial(), "ok", "n1 gives the job 2 processors as asked for, and keeps it to them"),
        (trial(report=None), "warning", "job_history_enable"),
        (
            trial(report=JobReport(id="12", tag="t", state=JobState.FAILED, reason="exit 1"), told=[]),
            "error",
            "ended as failed (exit 1)",
        ),
    ],
)
def test_a_problem_is_told_with_its_way_out(given: Trial, level: str, text: str) -> None:
    assert [finding.level for finding in judge(given) if text in finding.text] == [level]
