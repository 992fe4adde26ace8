"""The number of the format that a file carries: files of a newer version are named as such, not as damaged.

Each kind of file that outlives a version has one, in the key `format` of its JSON object; a file without
one has format 1. The journal keeps its own. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from adaptor import __version__


def newer(data: bytes, known: int) -> str:
    """The message about a file that a newer version has written; empty: this version may read it, or it is
    damaged.

    Args:
        data: the content of the file, as JSON.
        known: the highest format that this version knows.
    """
    with contextlib.suppress(ValueError, RecursionError):
        return newer_content(json.loads(data), known)
    return ""


def newer_content(content: Any, known: int) -> str:
    """The message about a file's content, as parsed JSON, that a newer version has written; empty: not so."""
    number = content.get("format") if isinstance(content, dict) else None
    if not isinstance(number, int) or number <= known:
        return ""
    return (
        f"has format {number}, written by a newer version of the adaptor; this one, {__version__}, knows"
        f" formats up to {known}: use the newer version, or another state directory ($ADAPTOR_DIR)"
    )
