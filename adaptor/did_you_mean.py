"""The suggestion in the message for a mistyped word."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "", shown: str = "'{}'") -> str:
    """`did you mean 'cpus'?`, or `otherwise` where no known word is near.

    Args:
        shown: how the known word is written; `{}` stands for it.
    """
    import difflib  # Only here: most runs of a program suggest nothing.

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {shown.format(near[0])}?" if near else otherwise
