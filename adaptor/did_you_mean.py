"""The suggestion in the message for a mistyped word, and the words for a value of a wrong type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "", shown: str = "'{}'") -> str:
    """`did you mean 'cpus'?`, or `otherwise` where no known word is near.

    Args:
        shown: how the known word is written; `{}` stands for it.
    """
    import difflib  # Only here: most runs of a program suggest nothing.

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {shown.format(near[0])}?" if near else otherwise


_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping of keys to values",
    "null": "nothing",
}
_SCALARS = ("int", "float", "bool")  # types that text without quotes may be taken for
_EXPECTED = re.compile(r"Expected `([a-z |]+)`(?: (>=|>|<=) ([\d.e+-]+))?(?:, got `([a-z]+)`)?")


def type_words(problem: str) -> str:
    """`needs a whole number, not text` for what msgspec says of a value; other messages stay as they are."""
    found = _EXPECTED.fullmatch(problem)
    kinds = found[1].split(" | ") if found else []
    if found is None or not _TYPES.keys() >= {*kinds, found[4] or "null"}:
        return problem
    wanted = " or ".join(_TYPES[kind] for kind in kinds if kind != "null" or len(kinds) == 1)
    limit = (found[3] or "").removesuffix(".0")
    bound = {">=": f" of {limit} or more", ">": f" above {limit}", "<=": f" of at most {limit}"}
    quotes = ": put it in quotes" if "str" in kinds and found[4] in _SCALARS else ""
    given = f", not {_given(found[4], kinds)}" if found[4] else ""
    return f"needs {wanted}{bound.get(found[2], '')}{given}{quotes}"


def _given(kind: str, wanted: Sequence[str]) -> str:
    return "a fraction" if kind == "float" and "int" in wanted else _TYPES[kind]
