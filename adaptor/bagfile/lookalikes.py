"""Lines of a list that are evidently parts of a script: as tasks of their own they do harm, or nothing."""

from __future__ import annotations

import re

_BEGINS = re.compile(r"(?:for|while|until|select|if|case)\s")
_ENDS = re.compile(r"[;&)\s](?:done|fi|esac)\b")
_PARTS = re.compile(r"(?:do|done|then|else|fi|esac|elif\s.*|\{|\}|;;)(?:\s*[;&|<>].*)?$|\w+\s*\(\)\s*\{?$")
_HERE = re.compile(r"(?<!<)<<(?!<)-?\s*(?P<quote>['\"]?)\\?[A-Za-z_]\w*(?P=quote)")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_PERHAPS_END = re.compile(rf"(<<-?\s*)?({_QUOTED.pattern})")
_ALONE = re.compile(
    r"(?:module|ml)\s+(?:load|add|purge|use|swap|unload|switch)\b|cd(?:\s|$)|pushd\s|set\s+[-+]|shopt\s|ulimit\s"
    r"|export\s|unset\s|(?:source|\.)\s|conda\s+activate\b|[A-Za-z_]\w*=(?:\S*|\"[^\"]*\"|'[^']*')$"
)
_GOES_ON = re.compile(r"[;&|]")


def script_part(line: str) -> str | None:
    """Why a line is part of a script, for a message; None: it may be a task.

    Args:
        line: stripped.
    """
    if (len(line) - len(line.rstrip("\\"))) % 2:
        return "goes on behind its '\\'"
    bare = _QUOTED.sub("''", line)
    if _BEGINS.match(line) and not _ENDS.search(bare):
        return f"begins a '{line.split()[0]}' that other lines end"
    if _PARTS.match(line):
        return "belongs to the lines around it"
    if _HERE.search(_without_plain_quotes(line)):
        return "begins a here-document"
    if _ALONE.match(line) and not _GOES_ON.search(bare):
        return "changes nothing for the other lines"
    return None


def _without_plain_quotes(line: str) -> str:
    """Without quoted texts, but for the quoted ends of here-documents."""
    return _PERHAPS_END.sub(lambda found: found[0] if found[1] else "''", line)
