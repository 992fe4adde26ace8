"""`python -m bench.house [folder]`: the size of the source in files, lines, folders and circles of imports.

The folder is another checkout, so that two commits can be compared.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.table import Row, show
from tests.source_tree import ROOT, Module, Tree, circles, read_tree


def rows(root: Path) -> Iterator[Row]:
    """The counts of adaptor/ and backends/ together; a file `__init__.py` counts as a file with its lines."""
    tree = read_tree(root)
    lengths = {module: module.path.read_text(encoding="utf-8").count("\n") for module in tree.values()}
    longest = max(lengths, key=lengths.__getitem__)
    yield Row("files", f"{len(tree):,}")
    yield Row("lines", f"{sum(lengths.values()):,}")
    yield Row("lines of a file, median", f"{median(lengths[module] for module in _code(tree)):.0f}")
    yield Row("lines of the longest file", f"{lengths[longest]} ({longest.name})")
    yield _functions(tree)
    folders = Counter(module.path.parent.relative_to(root) for module in _code(tree))
    widest, count = folders.most_common(1)[0]
    yield Row("folders", str(len({module.path.parent for module in tree.values()})))
    yield Row("modules in the largest folder", f"{count} ({widest})", "≤ 25")
    groups = circles(tree)
    told = f"{len(groups)} of {sum(map(len, groups))} modules" if groups else "0"
    yield Row("circles of imports, for types too", told, "0")
    yield _tests(root, tree)


def _code(tree: Tree) -> list[Module]:
    return [module for module in tree.values() if module.path.stem not in ("__init__", "__main__")]


def _functions(tree: Tree) -> Row:
    lengths = [
        (node.end_lineno or node.lineno) - node.lineno + 1
        for module in tree.values()
        for node in ast.walk(module.code)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return Row("lines of a function, median and longest", f"{median(lengths):.0f} and {max(lengths)}")


def _tests(root: Path, tree: Tree) -> Row:
    """Number of modules with a test file of their name at the same place below tests/."""
    code = [module.path.relative_to(root) for module in _code(tree)]
    found = sum((root / "tests" / _below(path).parent / f"test_{path.name}").exists() for path in code)
    return Row("modules with a test file of their name", f"{found} of {len(code)}")


def _below(path: Path) -> Path:
    """Path of the tests of a module: those of adaptor/ are one folder higher."""
    return Path(*path.parts[1:]) if path.parts[0] == "adaptor" else path


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    show(str(folder), rows(folder))
