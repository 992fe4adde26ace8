"""A task leaves one line when it begins and one when it ends, and fails as often as planned."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab.campaign.effects import Effects
from lab.campaign.plan import PlannedTask


@pytest.fixture
def effects(tmp_path: Path) -> Effects:
    return Effects(tmp_path / "effects")


def execute(line: str, task: int, attempt: int) -> int:
    variables = {"ADAPTOR_TASK_ID": str(task), "ADAPTOR_ATTEMPT": str(attempt)}
    return subprocess.run(
        line.split(), env={**os.environ, **variables}, stdout=subprocess.DEVNULL, check=False
    ).returncode


def test_a_task_fails_as_often_as_planned_and_then_succeeds(effects: Effects) -> None:
    _, line = effects.bag([PlannedTask(0.0, failures=2, code=7)])
    assert [execute(line, 0, attempt) for attempt in (1, 2, 3)] == [7, 7, 0]
    told = [(effect.word, effect.attempt) for effect in effects.all()]
    assert told == [(word, n) for n in (1, 2, 3) for word in ("begin", "done" if n == 3 else "fail")]


def test_what_is_through_is_counted_once(effects: Effects) -> None:
    _, good, bad = effects.bag([PlannedTask(0.0), PlannedTask(0.0, failures=4, code=1)])
    assert effects.through() == 0
    execute(bad, 1, 1)
    assert effects.through() == 1
    execute(bad, 1, 2)
    execute(good, 0, 1)
    assert effects.through() == 2
