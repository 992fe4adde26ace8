"""Each mutant is another program, and changes what runs."""

from __future__ import annotations

import ast

import pytest

from lab.mutants.mutations import mutants


def mutated(source: str) -> set[str]:
    return {mutant.apply(source) for mutant in mutants(source)}


@pytest.mark.parametrize(
    ("source", "others"),
    [
        ("x = a < b", {"x = (a <= b)"}),
        ("x = a is not b", {"x = (a is b)"}),
        ("x = a + b * c", {"x = (a - b * c)", "x = a + (b / c)"}),
        ("x = a and b", {"x = (a or b)"}),
        ("x = not a", {"x = (a)"}),
        ("x = True", {"x = (False)"}),
        ("x = 1.5", {"x = (2.5)"}),
        ("if a: b = c", {"if (not (a)): b = c"}),
        ("x.y = z", {"pass"}),
        ("del x", {"pass"}),
        ("f()", {"pass"}),
        ("def f(): return a", {"def f(): return None"}),
        ("for a in b: break", {"for a in b: continue"}),
        ("é = 'é', a > b", {"é = 'é', (a >= b)"}),
        ("x: Literal[1] = y", set()),
        ("def f(a: Literal[1]) -> Literal[2]: pass", set()),
        ("assert a < b", set()),
        ("if TYPE_CHECKING: f()", set()),
        ("'text'", set()),
    ],
)
def test_mutants_of_a_statement(source: str, others: set[str]) -> None:
    assert mutated(source) == others


def test_a_mutant_says_where_its_statement_begins_and_whether_an_import_runs_it() -> None:
    source = "LIMIT = 1\n\ndef f(a=2):\n    return g(\n        3)\n"
    numbers = [mutant for mutant in mutants(source) if mutant.before.isdigit()]
    assert [(mutant.line, mutant.statement, mutant.at_import) for mutant in numbers] == [
        (1, 1, True),
        (3, 3, True),
        (5, 4, False),
    ]
    for mutant in mutants(source):
        assert ast.dump(ast.parse(mutant.apply(source))) != ast.dump(ast.parse(source))
