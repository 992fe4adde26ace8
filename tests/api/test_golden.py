"""Answers are those that were recorded: of every question, live and offline, and of every command."""

from __future__ import annotations

import json
from pathlib import Path

from tests.api.golden import RECORDED, observed


def test_answers_are_those_that_were_recorded(tmp_path: Path) -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    now = {f"{number:03} {name}": value for number, (name, value) in enumerate(observed(tmp_path))}
    now = json.loads(json.dumps(now))
    assert list(now) == list(recorded)
    assert {name: now[name] for name in now if now[name] != recorded[name]} == {}
