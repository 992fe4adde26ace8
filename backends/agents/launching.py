"""The words of a command that is to run on a node."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adaptor.config.donation import NODE
from adaptor.node_agent.name_checks import check_name
from backends.base import SchedulerError

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
"""Means the same to every program and every shell."""


def command_on(launcher: Sequence[str], node: str, words: Sequence[str]) -> list[str]:
    """`words` behind the site's launcher; themselves where it has none.

    Raises:
        SchedulerError: the node has no name that we trust in a command, or a word would mean something
            else to the shell of a node (ssh hands all words to one).
    """
    try:
        check_name(node)
    except ValueError as error:
        raise SchedulerError(f"a node cannot be donated: {error}") from error
    for word in words:
        if launcher and not _PLAIN.fullmatch(word):
            raise SchedulerError(
                f"{word!r} cannot be passed to {node}: a launcher needs paths of letters, digits and "
                "'_@%+=:,./-'; put the adaptor and its state directory ($ADAPTOR_DIR) on such paths"
            )
    return [*(word.replace(NODE, node) for word in launcher), *words]
