"""The versions that a reproducible installation has: `constraints.txt`.

    python -m tests.packaging.constraints

writes those of this environment, in which the tests have passed: of the libraries of the package and its
extras, and of all that they need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

FILE = Path(__file__).parents[2] / "constraints.txt"
EXTRAS = ("compiled", "dask", "demo", "executor", "gpu", "gridengine", "mcp", "notify", "web")
"""Extras that users install; the tools of developers are left out."""
HEAD = """\
# Versions with which the tests have passed: pip install -c constraints.txt request_adaptor-*.whl
# Written by `python -m tests.packaging.constraints`.
"""
OLDEST = (3, 10)
"""The oldest Python of the package; it is free to take other versions than those that need a later one."""


def closure(names: Iterable[str], extras: Iterable[str] = ()) -> Iterator[str]:
    """Libraries that these packages of ours need, directly or not, as far as they are installed here."""
    seen: set[tuple[str, str]] = set()
    waiting = [(name, extra) for name in names for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            needed = requires(name) or []
        except PackageNotFoundError:
            continue
        for text in needed:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                child = canonicalize_name(requirement.name)
                waiting += [(child, each) for each in ("", *requirement.extras)]
    yield from sorted({name for name, _ in seen if not name.startswith("request-adaptor")})


def lines() -> Iterator[str]:
    for name in closure(["request-adaptor"], EXTRAS):
        try:
            needs = SpecifierSet(metadata(name).get("Requires-Python") or "")
        except PackageNotFoundError:
            continue
        oldest = next(minor for minor in range(OLDEST[1], 100) if f"3.{minor}" in needs)
        later = f'; python_version >= "3.{oldest}"' if oldest > OLDEST[1] else ""
        yield f"{name}=={version(name)}{later}"


if __name__ == "__main__":
    FILE.write_text(HEAD + "".join(f"{line}\n" for line in lines()), encoding="utf-8")
