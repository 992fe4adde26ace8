"""Each problem of a node is named with its way out."""

from __future__ import annotations

from typing import Any

import pytest

from adaptor import __version__
from adaptor.daemon.trial.judging import Told, Trial, judge
from adaptor.reports import JobReport, JobState


def told(**changes: Any) -> Told:
    fields: dict[str, Any] = {
        "node": "n1",
        "python": "3.11.2",
        "executable": "/usr/bin/python3",
        "version": __version__,
        "problem": "",
        "reached": ["tcp://login:5"],
        "memory_limit": 4 << 30,
        "spool": "",
        "time": 100.0,
    }
    return Told(**{**fields, **changes})


def trial(**changes: Any) -> Trial:
    fields: dict[str, Any] = {
        "job": "12",
        "folder": "/state/check-1",
        "python": "python3",
        "addresses": ("tcp://login:5",),
        "daemon_runs": True,
        "spool": "",
        "told": told(),
        "called": True,
        "skew": 0.1,
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
        (trial(told=None, called=True), "error", "on a file system that the nodes share ($ADAPTOR_DIR)"),
        (trial(told=None, called=False, words="python3: not found"), "error", "python3: not found. Does"),
        (trial(told=None, called=False), "error", "or the nodes do not see that folder"),
        (trial(told=told(problem="No module named zmq")), "error", "install the adaptor for python3"),
        (trial(told=told(version="0.0")), "error", "install the same version on both"),
        (trial(told=told(reached=[])), "error", "set `daemon.host`"),
        (trial(addresses=()), "warning", "adaptor daemon start"),
        (
            trial(spool="/s", told=told(spool="No such file or directory")),
            "error",
            "`spool` must be a folder",
        ),
        (trial(skew=-400.0), "warning", "6m 40s behind this machine's"),
        (trial(skew=90.0), "warning", "ahead of this machine's"),
        (trial(skew=None), "warning", "was not compared"),
        (trial(told=told(memory_limit=None)), "warning", "ConstrainRAMSpace"),
        (trial(report=None), "warning", "job_history_enable"),
        (
            trial(report=JobReport(id="12", tag="t", state=JobState.FAILED, reason="exit 1"), told=None),
            "error",
            "ended as failed (exit 1)",
        ),
    ],
)
def test_a_problem_is_told_with_its_way_out(given: Trial, level: str, text: str) -> None:
    assert [finding.level for finding in judge(given) if text in finding.text] == [level]
