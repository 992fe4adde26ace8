"""All backends on all recorded answers: what they make of them is what was recorded."""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import Any

import msgspec
import pytest

from tests.backends.recorded_clusters import GOLDEN, Golden, Scene, answers, key_of, scenes


@pytest.fixture(scope="module")
def golden() -> Golden:
    return msgspec.json.decode(GOLDEN.read_bytes(), type=Golden)


@pytest.mark.parametrize("scene", list(scenes()), ids=lambda scene: scene.name)
def test_what_a_backend_makes_of_a_recorded_cluster(scene: Scene, golden: Golden) -> None:
    recorded = {case: keys for case, keys in golden.cases.items() if case.startswith(f"{scene.name}: ")}
    found = dict(answers(scene))
    assert found.keys() == recorded.keys()
    differing = [
        _difference(f"{case}: {question}", golden.values.get(recorded[case].get(question, "")), value)
        for case, questions in found.items()
        for question, value in questions.items()
        if key_of(value) != recorded[case].get(question)
    ]
    assert not differing, "\n".join(differing[:5])
    assert {case: questions.keys() for case, questions in found.items()} == {
        case: questions.keys() for case, questions in recorded.items()
    }


def _difference(name: str, before: Any, now: Any) -> str:
    recorded, found = (json.dumps(value, indent=1, sort_keys=True).splitlines() for value in (before, now))
    return "\n".join([name, *unified_diff(recorded, found, "recorded", "now", lineterm="", n=2)])
