"""Each problem of a node is named with its way out."""

from __future__ import annotations

from typing import Any

import pytest

from adaptor import __version__
from adaptor.api import PilotRecord
from adaptor.cli.checking.judging import NodeAnswer, Trial, judge
from tests.cli.fake_control import pilot_view


def told(**changes: Any) -> NodeAnswer:
    fields: dict[str, Any] = {
        "node": "n1",
        "python": "3.11.2",
        "executable": "/usr/bin/python3",
        "version": __version__,
        "reached": ["tcp://login:5"],
        "bound": True,
        "memory": 64 << 30,
        "memory_limit": 60 << 30,
    }
    return NodeAnswer(**{**fields, **changes})


def job(state: str, **changes: Any) -> PilotRecord:
    times: dict[str, Any] = {"started": 1.0, "ended": 3.0}
    return pilot_view(12, **{"job": "12", "state": state, **times, **changes})


def trial(**changes: Any) -> Trial:
    fields: dict[str, Any] = {
        "folder": "/state/check-1",
        "addresses": ("tcp://login:5",),
        "beside": True,
        "nodes": 1,
        "each": 2,
        "wait": 600.0,
        "told": [told()],
        "pilot": job("completed"),
        "problems": [],
    }
    return Trial(**{**fields, **changes})


def silent(state: str, **changes: Any) -> Trial:
    return trial(told=[], pilot=job(state, **changes))


def test_all_is_well() -> None:
    found = judge(trial())
    assert {finding.level for finding in found} == {"ok"}
    assert any("limits the memory of this job on n1 to 60G" in finding.text for finding in found)


@pytest.mark.parametrize(
    ("given", "level", "text"),
    [
        (trial(pilot=None, told=[], problems=["no slot"]), "error", "submitted within 10m: no slot"),
        (silent("refused", end_reason="no account"), "error", "could not be run: no account"),
        (silent("queued", started=None, ended=None), "error", "did not start within 10m and was cancelled"),
        (silent("failed", end_reason="no module"), "error", "job 12 ran no task: failed: no module"),
        (silent("running", ended=None), "error", "job 12 ran no task: running"),
        (silent("completed"), "error", "job 12 ran no task: completed"),
        (trial(told=[], problems=["n1 gave 1 of 2"]), "error", "n1 gave 1 of 2"),
        (trial(told=[told(problem="python3: not found")]), "error", "its task failed: python3: not found"),
        (trial(told=[told(version="0.0")]), "error", "install the same version on both"),
        (trial(told=[told(reached=[])]), "error", "set `daemon.host`"),
        (trial(addresses=()), "ok", "a worker on n1 reached the daemon of the check"),
        (trial(told=[told(skew=-400.0)]), "warning", "6m 40s behind this machine's"),
        (trial(told=[told(skew=90.0)]), "warning", "ahead of this machine's"),
        (trial(told=[told(memory_limit=None)]), "warning", "ConstrainRAMSpace"),
        (
            trial(told=[told(memory_limit=256 << 20)]),
            "warning",
            "jobs that ask for no memory get 256M on n1, all tasks together: use --mem",
        ),
        (trial(nodes=2), "error", "was to run on 2 nodes, but only n1 answered"),
        (trial(), "ok", "n1 gives the job 2 processors as asked for, and keeps it to them"),
        (trial(pilot=job("running", ended=None)), "warning", "job_history_enable"),
        (trial(pilot=job("vanished")), "warning", "job_history_enable"),
        (trial(pilot=job("failed", end_reason="exit 1")), "warning", "ended as failed (exit 1)"),
    ],
)
def test_a_problem_is_told_with_its_way_out(given: Trial, level: str, text: str) -> None:
    assert [finding.level for finding in judge(given) if text in finding.text] == [level]
