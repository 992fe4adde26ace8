"""The tests that reach all branches, at least cost."""

from __future__ import annotations

from lab.mutants.cover import Lines, Reach, cover
from lab.mutants.mutations import mutants

REACH = Reach(
    seconds={"long": 9.0, "property": 1.0, "quick": 0.0, "same": 0.0, "elsewhere": 0.0},
    branches={
        "long": ["a.py:1:2", "a.py:2:3", "a.py:3:4"],
        "property": ["a.py:1:2"],
        "quick": ["a.py:1:2", "a.py:2:3"],
        "same": ["a.py:2:3"],
        "elsewhere": [],
    },
    properties=["property"],
)


def test_properties_stay_and_then_what_adds_branches_at_least_cost() -> None:
    assert cover(REACH, {"same": 20, "quick": 10}) == ["property", "quick", "long"]
    assert cover(REACH, {"same": 10, "quick": 20}) == ["property", "same", "long"]


def test_a_mutant_meets_the_tests_that_run_its_statement() -> None:
    lines = Lines(REACH)
    by_line = {mutant.line: mutant for mutant in mutants("LIMIT = 1\ndef f():\n    return (2,\n        3)\n")}
    assert lines.reaching("a.py", by_line[1]) == {"long", "property", "quick", "same"}, "an import runs it"
    assert lines.reaching("a.py", by_line[4]) == {"long", "quick", "same"}
    assert lines.reaching("b.py", by_line[4]) == set()
