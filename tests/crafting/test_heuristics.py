"""The heuristics are declared once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from adaptor.crafting.heuristics import DEFAULT, HEURISTICS, HeuristicName
from adaptor.crafting.planner import PLANNERS

ROOT = Path(__file__).parents[2]


def test_every_name_has_its_traits_and_its_function() -> None:
    assert tuple(HEURISTICS) == tuple(PLANNERS) == get_args(HeuristicName)
    assert DEFAULT in HEURISTICS


def test_no_rule_compares_a_heuristic_by_its_name() -> None:
    """What tells them apart is a trait."""
    named = re.compile(r"heuristic *[!=]= *[\"']|heuristic in [({\[]")
    rooms = ("crafting", "decisions", "daemon", "scheduling")
    folders = [*(ROOT / "adaptor" / room for room in rooms), ROOT / "experiments" / "adaptor_simulation"]
    rules = [path for folder in folders for path in folder.rglob("*.py")]
    assert rules
    assert [path.name for path in rules if named.search(path.read_text(encoding="utf-8"))] == []
