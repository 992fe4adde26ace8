"""The table of constants has each numeric constant of the rooms that decide, and no more."""

from __future__ import annotations

import ast

import pytest

from lab.ablation.measures import MEASURES
from lab.ablation.table import Constant, Rule, change, constants, in_source, named, numeric, table


def test_each_numeric_constant_is_in_the_table_once_and_no_more() -> None:
    listed = [(file, name) for file, known in table().items() for name in (*known.rules, *known.other)]
    assert sorted(listed) == sorted(set(in_source()))


def test_each_rule_has_measures_and_something_to_try() -> None:
    for constant in constants():
        assert constant.measures, constant.title
        assert set(constant.measures) <= set(MEASURES), constant.title
        assert constant.rule.without or constant.half_and_twice, constant.title


def test_constants_of_a_module() -> None:
    text = "A = 1\nB, C = 2, 0.5\nD: float = 1 / 3\nE = len(x)\nF = {'a': 3}\nlower = 4\nG = True\n"
    assert [place.name for place in numeric(text)] == ["A", "B", "C", "D", "F"]


def test_another_value_changes_one_constant() -> None:
    text = "é = 'é'\nA, B = 1, (\n    2.0 * C\n)  # two\n"
    assert ast.unparse(ast.parse(change(text, "B", "0.0").apply(text))) == "é = 'é'\nA, B = (1, 0.0)"


@pytest.mark.parametrize(
    ("value", "unit", "found"),
    [
        ("4", "tasks", ["2", "8"]),
        ("1", "tasks", ["2"]),
        ("1.5", "factor", ["1.25", "2"]),
        ("0.9", "chance", ["0.8", "0.95"]),
        ("1 / 4", "of the time", ["0.125", "0.5"]),
        ("steps_for(0.9)", "factor", []),
        ("(1, 2)", "s", []),
    ],
)
def test_half_and_twice(value: str, unit: str, found: list[str]) -> None:
    constant = Constant(file="x.py", name="X", value=value, rule=Rule(unit=unit, trades=""), measures=())
    assert constant.half_and_twice == found


def test_a_name_that_begins_no_constant_is_refused_with_one_that_does() -> None:
    assert {each.file for each in named(["crafting/serving.py"])} == {"crafting/serving.py"}
    with pytest.raises(LookupError, match=r"no constant crafting/serving:SOONER .* one is runtimes/known"):
        named(["crafting/serving:SOONER"])
