"""The table of the constants, and the constants in the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from lab.mutants.mutations import Mutant, line_starts, span
from lab.mutants.rooms import ROOT

ROOMS = ("runtimes", "crafting", "budget", "decisions", "forecast", "scheduling")
Other = Literal[
    "format", "number", "bound", "wait", "paper", "shown", "measured", "site", "first", "promise"
]  # fmt: skip


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a constant of a rule decides."""

    unit: str
    trades: str
    without: tuple[str, ...] = ()
    """Expressions under which the rule is not there."""
    measures: tuple[str, ...] = ()
    """Instead of those of the file."""


class File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Constants of a file, by name."""

    measures: tuple[str, ...] = ()
    rules: Mapping[str, Rule] = {}
    other: Mapping[str, Other] = {}


class Constant(msgspec.Struct, frozen=True, kw_only=True):
    """A constant of a rule, and where it stands."""

    file: str
    """Below `adaptor/`."""
    name: str
    value: str
    """As the source has it."""
    rule: Rule
    measures: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{self.file}:{self.name}"

    @property
    def room(self) -> str:
        return self.file.split("/")[0]

    @property
    def half_and_twice(self) -> list[str]:
        """Of a factor what is above 1, of a share above one half what is left to 1; empty: no number."""
        try:
            value = eval(self.value, {})  # of our own source
        except NameError:
            return []
        if isinstance(value, int):
            return [str(each) for each in (value // 2, 2 * value) if each]
        if not isinstance(value, float):
            return []
        if self.rule.unit == "factor" and value < 3:
            return [f"{1 + (value - 1) * times:g}" for times in (0.5, 2)]
        if 0.5 < value < 1:
            return [f"{1 - (1 - value) * times:g}" for times in (2, 0.5)]
        return [f"{value * times:g}" for times in (0.5, 2)]


class Place(NamedTuple):
    """An assignment of a constant."""

    name: str
    value: ast.expr


def numeric(source: str) -> Iterator[Place]:
    """Constants of a module whose value is written with numbers."""
    for node in ast.parse(source).body:
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
        for name, value in pairs:
            if isinstance(name, ast.Name) and name.id.lstrip("_").isupper() and _has_number(value):
                yield Place(name.id, value)


def _has_number(value: ast.expr) -> bool:
    numbers = (each.value for each in ast.walk(value) if isinstance(each, ast.Constant))
    return any(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers)


def table() -> dict[str, File]:
    """By file below `adaptor/`."""
    text = (Path(__file__).parent / "constants.yaml").read_text(encoding="utf-8")
    return msgspec.yaml.decode(text, type=dict[str, File])


def in_source() -> Iterator[tuple[str, str]]:
    """File and name of all numeric constants of the rooms."""
    for room in ROOMS:
        for path in sorted((ROOT / "adaptor" / room).rglob("*.py")):
            for place in numeric(path.read_text(encoding="utf-8")):
                yield path.relative_to(ROOT / "adaptor").as_posix(), place.name


def constants() -> list[Constant]:
    """Those of rules."""
    return [
        Constant(
            file=file,
            name=name,
            value=ast.unparse(_place(source(ROOT, file), name).value),
            rule=rule,
            measures=rule.measures or known.measures,
        )
        for file, known in table().items()
        for name, rule in known.rules.items()
    ]


def source(root: Path, file: str) -> str:
    return (root / "adaptor" / file).read_text(encoding="utf-8")


def _place(text: str, name: str) -> Place:
    return next(place for place in numeric(text) if place.name == name)


def change(text: str, name: str, value: str) -> Mutant:
    """The change of a source that gives a constant another value."""
    node = _place(text, name).value
    encoded = text.encode()
    start, end = span(line_starts(encoded), node)
    return Mutant(node.lineno, node.lineno, True, start, end, encoded[start:end].decode(), value)


def named(names: Sequence[str]) -> list[Constant]:
    """Constants whose `file:name` begins with one of these; all if none is named.

    Raises LookupError: none begins with one of the names.
    """
    found = constants()
    for name in names:
        if not any(each.title.startswith(name) for each in found):
            raise LookupError(f"no constant {name} in constants.yaml; one is {found[0].title}")
    return [each for each in found if not names or each.title.startswith(tuple(names))]
