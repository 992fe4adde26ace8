"""From a task's command to the program to execute and its arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

SHELL = "/bin/sh"
_PLAIN = re.compile(r"[\w.+-]*/[\w./+-]+(?: +[\w./+:,@%=-]+)*", re.ASCII)
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"

_found: dict[tuple[str, str], str] = {}
"""Programs found so far, by name and PATH; only absolute ones, which do not depend on the folder."""


def plain_words(line: str) -> list[str] | None:
    """The words of a shell line in which the shell has nothing to do; None if it has, or may have.

    The first word is a path, hence no builtin, function or alias; no word is quoted, expanded or
    assigned. Starting such a line without a shell halves the cost of a short task.
    """
    return line.split() if _PLAIN.fullmatch(line) else None


def shell_words(line: str) -> list[str]:
    return [SHELL, "-c", line]


def program_of(name: str, environment: Mapping[str, str]) -> str:
    """The file to execute for `name`, sought on the PATH of the task. The task's folder is the current one.

    Raises FileNotFoundError.
    """
    if "/" in name:
        return name
    path = environment.get("PATH", _DEFAULT_PATH)
    known = _found.get((name, path))
    if known is None or not _executable(known):
        known = _search(name, path)
        if known.startswith("/"):
            _found[name, path] = known
    return known


def _search(name: str, path: str) -> str:
    for folder in path.split(os.pathsep):
        candidate = f"{folder or '.'}/{name}"
        if name and _executable(candidate):
            return candidate
    raise FileNotFoundError(name)


def _executable(path: str) -> bool:
    return os.access(path, os.X_OK) and Path(path).is_file()
