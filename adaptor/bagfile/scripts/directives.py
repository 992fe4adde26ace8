"""The `#SBATCH` and `#PBS` lines of a script, as words: read as sbatch reads them.

They count at the beginning of a line and before the first command only. A `#` that is neither quoted nor
escaped begins a comment; quotes of both kinds and backslashes are taken away.
"""

from __future__ import annotations

import re

import msgspec


class Word(msgspec.Struct, frozen=True):
    """One word of a directive."""

    text: str
    line: int


def is_script(data: bytes) -> bool:
    """Whether a file is a script and no list of tasks."""
    return data.startswith(b"#!")


def directives(text: str, mark: str) -> list[tuple[int, str]]:
    """The numbers and the rest of the lines that begin with a mark, up to the first command."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(mark):
            rest = line[len(mark) :]
            if not rest or rest[0].isspace() or rest[0] == "-":
                found.append((number, rest))
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return found


_PIECE = re.compile(
    r"(?P<space>\s+)|(?P<comment>#.*)|(?P<quoted>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')"
    r"|\\(?P<escaped>.)|(?P<plain>[^\s#\"'\\]+)|(?P<lone>.)"
)
_ESCAPED = re.compile(r"\\(.)")


def words_of(rest: str, line: int) -> list[Word]:
    """The words of one directive. Raises ValueError: a quote has no end."""
    words: list[Word] = []
    word: str | None = None
    for piece in _PIECE.finditer(rest):
        if piece["comment"] is not None:
            break
        if piece["space"] is not None:
            words += [Word(word, line)] if word is not None else []
            word = None
            continue
        if piece["lone"] in ("'", '"'):
            raise ValueError(f"the quote {piece['lone']} has no end")
        quoted = _ESCAPED.sub(r"\1", piece["quoted"][1:-1]) if piece["quoted"] else ""
        word = (word or "") + (piece["escaped"] or piece["plain"] or quoted)
    return words + ([Word(word, line)] if word is not None else [])
