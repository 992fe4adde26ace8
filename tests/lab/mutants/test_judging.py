"""Mutants of a small tree, by pytest in a copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.mutants import judging, rooms
from lab.mutants.judging import Tree, reach_of, sample, unneeded, verdicts
from lab.mutants.rooms import Room

SOURCE = """
def larger(a, b):
    if a > b:
        return a
    return b

def unseen():
    return 1
"""
TESTS = """
from adaptor.small.numbers import larger

def test_the_larger():
    assert larger(2, 1) == 2
    assert larger(1, 2) == 2

def test_the_first():
    assert larger(5, 4) == 5
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    for folder, file, text in (
        ("adaptor/small", "numbers.py", SOURCE),
        ("adaptor/small", "table.py", "MEASURED = (0.1, 0.2)"),
        ("tests/small", "test_numbers.py", TESTS),
    ):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / file).write_text(text)
    for name in ("adaptor", "adaptor/small"):
        (tmp_path / name / "__init__.py").touch()
    for name in ("bench", "backends", "docs", "experiments", "fixtures", "plugins", "skills"):
        (tmp_path / name).mkdir()
    (tmp_path / "lab").symlink_to(rooms.ROOT / "lab")
    monkeypatch.setattr(judging, "ROOT", tmp_path)
    monkeypatch.setattr(rooms, "ROOT", tmp_path)
    return Room("small", "adaptor/small", "tests/small")


def test_what_survives_and_what_is_unneeded(
    room: Room, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(tmp_path_factory.mktemp("tree"))
    reach = reach_of(room, tree, tmp_path)
    reach.seconds = dict.fromkeys(reach.seconds, 0.0)  # the machine may be busy
    chosen = sample(room, 100, 1)
    assert {file for file, _ in chosen} == {"adaptor/small/numbers.py"}, "a table has no mutants"
    assert sample(room, 3, 1) == sample(room, 3, 1)
    assert sample(room, 3, 1, "adaptor/small/other") == []
    judged = list(verdicts(room, tree, reach, chosen))
    survivors = {(verdict.reached, str(verdict.mutant)) for verdict in judged if not verdict.killed}
    assert survivors == {
        (True, "a > b → (a >= b)"),
        (False, "1 → (2)"),
        (False, "return 1 → return None"),
    }
    assert unneeded(room, reach, judged) == ["tests/small/test_numbers.py::test_the_first"]
    assert (tmp_path / "adaptor/small/numbers.py").read_text() == SOURCE

    monkeypatch.setattr(judging, "_PATIENCE", -100.0)
    over = [(verdict.killed, verdict.killer) for verdict in verdicts(room, tree, reach, chosen[:1])]
    assert over == [(True, "")], "its time is up"
