"""Rooms: folders of source, and the tests that judge their mutants."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
LEFT_OUT = "not nightly and not compiles and not slurm and not pbs and not ssh and not browser and not fuzz"
"""Tests of a room that judge no mutants: they need what is not on each machine, or take too long."""
_NOT_IN_ADAPTOR = {
    "backends": "backends",
    "simulation": "experiments/adaptor_simulation",
    "experiments": "experiments/adaptor_experiments",
    "donation_agents": "plugins/donation-agents/adaptor_donation_agents",
    "gridengine": "plugins/gridengine/adaptor_gridengine",
    "mcp": "plugins/mcp/adaptor_mcp",
}


class Room(msgspec.Struct, frozen=True):
    """Folders, below the root of the tree."""

    name: str
    source: str
    tests: str

    def modules(self) -> list[str]:
        """Its source files that have functions, below the root of the tree.

        Of the others, tables and types, only an import runs what mutants change, which counts for no test.
        """
        return sorted(
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / self.source).rglob("*.py")
            if path.name not in ("__init__.py", "__main__.py") and _has_functions(path)
        )

    def lines_of_tests(self) -> dict[str, int]:
        """Lines of each test function, with its decorators, by the id of pytest."""
        lines = {}
        for path in sorted((ROOT / self.tests).rglob("test_*.py")):
            file = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                    lines[f"{file}::{node.name}"] = (node.end_lineno or node.lineno) - first + 1
        return lines


def _has_functions(path: Path) -> bool:
    code = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(code))


def rooms() -> dict[str, Room]:
    """All rooms by name: a folder of source that has a folder of tests."""
    packages = sorted(path.parent.name for path in (ROOT / "adaptor").glob("*/__init__.py"))
    sources = {name: f"adaptor/{name}" for name in packages}
    sources |= _NOT_IN_ADAPTOR
    return {
        name: Room(name, source, f"tests/{name}")
        for name, source in sources.items()
        if (ROOT / source).is_dir() and (ROOT / "tests" / name).is_dir()
    }
