"""Files that came as a list of tasks, and hold no shell lines: JSON, tables, YAML, transcripts. Pure.

Each of their lines would be a command that no machine has, so their tasks would all fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from adaptor.units import shortened

_CELL = re.compile(r'(?:"[^"]*"|[\w.+-]+),')
_PERHAPS = re.compile(r"[\[{]|---$|[-$%]\s|[\w-]+:(?:\s|$)")


def is_json_lines(text: str) -> bool:
    """True if the first line that is not blank is a JSON object, whatever the name of the file."""
    first = next(_not_blank(text), "")
    return first.startswith('{"') or isinstance(_json(first), dict)


def other_file(text: str) -> str:
    """Why a whole file holds no shell lines, with the way out; empty: it may hold some."""
    if text.lstrip()[:1] in ("[", "{") and _json(text.strip()) is not None:
        return (
            "holds one JSON value; JSON Lines have one object per line: jq -c '.[]' FILE makes them of a list"
        )
    lines = [*islice((line for line in _not_blank(text) if not line.startswith("#")), 1000)]
    if len(lines) > 1 and all(map(_CELL.match, lines)) and len({line.count(",") for line in lines}) == 1:
        return "holds a table; a task per row: adaptor submit --template 'render {scene}' --csv FILE"
    return ""


def other_line(line: str) -> str:
    """Why a line, which is stripped, is no shell line; empty: it may be one."""
    if not _PERHAPS.match(line):
        return ""
    if line[0] in "[{":
        if line != "[" and not line.startswith('{"') and _json(line) is None:
            return ""
        return "is JSON; JSON Lines stand in a file of their own, one object per line, without #ADAPTOR lines"
    return f"begins with {shortened(line.split()[0])}, which is no command"


def _not_blank(text: str) -> Iterator[str]:
    """The lines, stripped; of a long text no more than are asked for."""
    return (line for found in re.finditer(r"[^\n]+", text) if (line := found[0].strip()))


def _json(text: str) -> Any:
    """The JSON value that a text is; None: it is none, or may be a shell line, such as `[ 1 ]`."""
    if text[:1] not in ("{", "[") or text[-1:] not in ("}", "]") or text[:2] == "[ ":
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
