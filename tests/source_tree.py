"""The source as data: modules, what each imports, and the circles among them.

`tests/test_house.py` holds the tree to `docs/house.md` with it; `python -m bench.house` counts with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Import:
    """One module imports another: ours, or one of a library."""

    target: str
    line: int
    only_types: bool = False
    """Under `if TYPE_CHECKING`: never imported when the program runs."""


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    code: ast.Module
    imports: tuple[Import, ...] = ()

    @property
    def room(self) -> str:
        """The folder or file below `adaptor/` that holds the module; each other package is one room."""
        parts = self.name.split(".")
        return parts[1] if parts[0] == "adaptor" and len(parts) > 1 else parts[0].removeprefix("adaptor_")


Tree = Mapping[str, Module]


PACKAGES = (
    *("adaptor", "backends"),
    *("experiments/adaptor_experiments", "experiments/adaptor_simulation"),
    "plugins/donation-agents/adaptor_donation_agents",
    *("plugins/gridengine/adaptor_gridengine", "plugins/mcp/adaptor_mcp"),
)


def read_tree(root: Path = ROOT, packages: Iterable[str] = PACKAGES) -> Tree:
    """All modules of the packages, which are folders below `root`, by their full names."""
    paths = {
        _name(path, (root / package).parent): path
        for package in packages
        for path in sorted((root / package).rglob("*.py"))
        if path.name != "_version.py"  # which builds write
    }
    return {name: _read(name, path, paths) for name, path in paths.items()}


def ours(module: Module, tree: Tree, types: bool = True) -> set[str]:
    """Modules of the tree that a module imports; without `types` only those that it needs when it runs."""
    return {
        arrow.target for arrow in module.imports if arrow.target in tree and (types or not arrow.only_types)
    }


def reached(start: str, arrows: Mapping[str, set[str]]) -> set[str]:
    """Modules that can be reached from a module; the module itself only by a circle."""
    found: set[str] = set()
    waiting = list(arrows[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += arrows[name]
    return found


def circles(tree: Tree) -> list[list[str]]:
    """Groups of modules each of which imports, in the end, itself. Imports for types count."""
    arrows = {name: ours(module, tree) for name, module in tree.items()}
    reach = {name: reached(name, arrows) for name in tree}
    groups = {
        tuple(sorted(other for other in reach[name] if name in reach[other]))
        for name in tree
        if name in reach[name]
    }
    return sorted(map(list, groups))


def _name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read(name: str, path: Path, names: Mapping[str, Path]) -> Module:
    code = ast.parse(path.read_text(encoding="utf-8"), str(path))
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return Module(name, path, code, tuple(_imports(code, package, names, False)))


def _imports(node: ast.AST, package: str, names: Mapping[str, Path], types: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, node.lineno, types) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = _base(node, package)
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            yield Import(whole if whole in names else base, node.lineno, types)
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        for child in node.body:
            yield from _imports(child, package, names, True)
        for child in node.orelse:
            yield from _imports(child, package, names, types)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _imports(child, package, names, types)


def _base(node: ast.ImportFrom, package: str) -> str:
    """The full name of the module in `from … import`: one dot is the package, each further one its parent."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    start = ".".join(parts[: len(parts) - node.level + 1])
    return f"{start}.{node.module}" if node.module else start
