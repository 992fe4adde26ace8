"""Mutants of a Python source by its syntax tree; each changes one expression or removes one statement."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_UNTOUCHED = {"annotation", "returns", "decorator_list", "bases", "type_params"}
"""Fields of nodes whose values change nothing that runs, or only how a class is made."""


class Mutant(msgspec.Struct, frozen=True):
    """Another text for a part of a source file."""

    line: int
    """Counted from 1."""
    statement: int
    """Line in which the statement begins."""
    at_import: bool
    """An import of the module runs it."""
    start: int
    """Bytes before the part."""
    end: int
    before: str
    after: str

    def apply(self, source: str) -> str:
        encoded = source.encode()
        return (encoded[: self.start] + self.after.encode() + encoded[self.end :]).decode()

    def __str__(self) -> str:
        def short(text: str) -> str:
            return " ".join(text.split())[:60]

        return f"{short(self.before)} → {short(self.after)}"


def mutants(source: str) -> list[Mutant]:
    """All mutants of `source`, in the order of the text."""
    encoded, found = source.encode(), []
    starts = line_starts(encoded)
    for node, after, statement, at_import in _changes(ast.parse(source), 1, at_import=True):
        start, end = span(starts, node)
        before = encoded[start:end].decode()
        found.append(Mutant(node.lineno, statement, at_import, start, end, before, after))
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.after))


def line_starts(source: bytes) -> list[int]:
    """Bytes before each line."""
    return [*itertools.accumulate(map(len, source.splitlines(keepends=True)), initial=0)]


def span(starts: Sequence[int], node: Any) -> tuple[int, int]:
    """Bytes before a node of the syntax tree, and before what follows it."""
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def _changes(node: ast.AST, statement: int, *, at_import: bool) -> Iterator[tuple[Any, str, int, bool]]:
    """Nodes below `node`, each with a text that may stand in its place, and where its statement begins."""
    if isinstance(node, (ast.JoinedStr, ast.Assert)) or _is_for_types(node):
        return
    if isinstance(node, ast.stmt):
        statement = node.lineno
        yield from ((node, other, statement, at_import) for other in _statements(node))
    elif isinstance(node, ast.expr):
        yield from ((node, f"({ast.unparse(other)})", statement, at_import) for other in _expressions(node))
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield node.test, f"(not ({ast.unparse(node.test)}))", statement, at_import
    for name, value in ast.iter_fields(node):
        if name in _UNTOUCHED or (isinstance(node, ast.ClassDef) and name == "keywords"):
            continue
        runs_later = name == "body" and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child, statement, at_import=at_import and not runs_later)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'")


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    other: Any = copy.copy(node)
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            other.ops = [_COMPARISONS[type(operator)]()]
        case ast.BinOp() if type(node.op) in _OPERATORS:
            other.op = _OPERATORS[type(node.op)]()
        case ast.BoolOp():
            other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            other = node.operand
        case ast.Constant(value=bool()):
            other.value = not node.value
        case ast.Constant(value=int() | float() as number):
            other.value = number + 1
        case _:
            return
    yield other


def _statements(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign():
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Delete() | ast.Raise():
            yield "pass"
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield "return None"
        case ast.Break():
            yield "continue"
        case ast.Continue():
            yield "break"
        case _:
            return


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None
