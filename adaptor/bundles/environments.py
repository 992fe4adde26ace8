"""Python environments in a bundle: which there are, and what changes in one that is copied elsewhere.

`venv` and conda write the path of an environment into its files. Text files get the path of the copy;
compiled ones keep the old one, and find there what they look for as long as it is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from adaptor.bag_spec import Bundle, StagedItem

_LARGEST_TEXT = 1 << 20  # bytes; what an installer writes a path into is smaller
_SEARCHED = (
    *("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "PKG_CONFIG_PATH", "MANPATH"),
    *("R_LIBS", "R_LIBS_USER", "PERL5LIB", "JULIA_LOAD_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"),
)
"""Variables in which paths below a staged folder become those of the copy. Others may say where to write."""
STAGE = "ADAPTOR_STAGE"


def environment_at(path: str) -> Literal["", "venv", "conda"]:
    """The kind of Python environment that a folder is; empty: no environment."""
    if os.path.isfile(os.path.join(path, "pyvenv.cfg")):  # noqa: PTH113, PTH118
        return "venv"
    return "conda" if os.path.isdir(os.path.join(path, "conda-meta")) else ""  # noqa: PTH112, PTH118


class Relocation:
    """From the paths of staged items to those of their copies."""

    def __init__(self, items: Sequence[StagedItem], root: str) -> None:
        """`root`: the folder of the copies."""
        self.root = root
        self._items = items
        self._to = {old: f"{root}/{item.name}" for item in items for old in (item.path, item.real)}
        self._texts = [os.fsencode(old) for old in sorted(self._to, key=len, reverse=True)]
        # Neither the end of another path, as the /env of /usr/bin/env, nor its beginning.
        self._old = re.compile(b"(?<![\\w./-])(?:%s)(?![\\w.-])" % b"|".join(map(re.escape, self._texts)))

    def path(self, path: str) -> str:
        """The copy of a path; the same path if it is in no staged item."""
        place = path
        while len(place) > 1:
            if place in self._to:
                return self._to[place] + path[len(place) :]
            place = os.path.dirname(place)  # noqa: PTH120
        return path

    def searched(self, paths: str) -> str:
        """The same for paths with colons between them."""
        return ":".join(map(self.path, paths.split(":")))

    def content(self, name: str, data: bytes) -> bytes:
        """The content of a file of the bundle, by its name there, in the copy."""
        if len(data) > _LARGEST_TEXT or not any(text in data for text in self._texts):
            return data
        if b"\0" in data or not self._in_environment(name):
            return data
        return self._old.sub(lambda found: os.fsencode(self._to[os.fsdecode(found[0])]), data)

    def _in_environment(self, name: str) -> bool:
        first = name.partition("/")[0]
        return any(item.environment and item.name == first for item in self._items)

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """The variables of a task: its own, with the copies in place of what is staged."""
        changed = {name: self.searched(given[name]) for name in _SEARCHED if given.get(name)}
        found = {**given, **changed, STAGE: self.root}
        for item in self._items:
            if item.environment:
                home = f"{self.root}/{item.name}"
                others = [each for each in found.get("PATH", "").split(":") if each and each != f"{home}/bin"]
                found["PATH"] = ":".join([f"{home}/bin", *others])
                found["VIRTUAL_ENV" if item.environment == "venv" else "CONDA_PREFIX"] = home
                found.pop("PYTHONHOME", None)
        return found

    def line(self, line: str, cwd: str) -> str:
        """A shell line whose program, or the `activate` that it sources, is that of the copy, and the script
        that it names next.

        Its other words stay: they may name what a task writes.
        """
        found = []
        end = 0
        while part := _WORD.match(line, end):
            found.append(part)
            end = part.end()
        for place in reversed(_named_by([part["word"] for part in found])):  # the others stay in their place
            start, end = found[place].span("word")
            if plain := _PLAIN.fullmatch(line[start:end]):
                quote, word = plain.groups()
                line = f"{line[:start]}{quote}{self._named(word, cwd)}{quote}{line[end:]}"
        return line

    def words(self, words: Sequence[str], cwd: str) -> list[str]:
        """The same for a program and its arguments."""
        named = _named_by(words)
        return [self._named(word, cwd) if place in named else word for place, word in enumerate(words)]

    def _named(self, word: str, cwd: str) -> str:
        if "/" not in word and not _SCRIPT.fullmatch(word):
            return word
        path = os.path.normpath(os.path.join(cwd, word))  # noqa: PTH118
        copied = self.path(path)
        return word if copied == path else copied


_SCRIPT = re.compile(r"[\w./+-]+\.(?:py|R|r|pl|jl|sh)", re.ASCII)
_PLAIN = re.compile(r"""(['"]?)([\w./+-]+)\1""", re.ASCII)
_WORD = re.compile(r"""\s*(?P<word>(?:[^\s;&|<>()'"`\\]|'[^']*'|"[^"]*")+)(?=[\s;&|]|$)""")
"""A word of the first command of a line."""
_SET = re.compile(r"[A-Za-z_]\w*=.*", re.ASCII | re.DOTALL)
_BEFORE = ("env", "exec", "nice", "nohup", "time")  # words before a program, without options
_SOURCES = ("source", ".")
_INTERPRETER = re.compile(r"python[\d.]*|Rscript|perl|julia|bash|sh")
_WITH_VALUE = ("-W", "-X")  # options of Python that take the next word
_NO_SCRIPT = ("-c", "-e", "-m")  # options whose next word is the program


def _named_by(words: Sequence[str]) -> list[int]:
    """Places of the program, or of the file that is sourced, and of the script after it and its options."""
    first = 0
    while first < len(words) and (words[first] in _BEFORE or _SET.fullmatch(words[first])):
        first += 1
    if first < len(words) and words[first] in _SOURCES:
        first += 1
    if first == len(words):
        return []
    after = first + 1
    if _INTERPRETER.fullmatch(os.path.basename(words[first])):  # noqa: PTH119
        while after < len(words) and words[after].startswith("-"):
            if words[after] in _NO_SCRIPT:
                return [first]
            after += 2 if words[after] in _WITH_VALUE else 1
    script = after < len(words) and _SCRIPT.fullmatch(words[after]) is not None
    return [first, after] if script else [first]


def relocation_of(bundle: Bundle, root: str) -> Relocation:
    return Relocation(bundle.items, root)
