"""Bags from files: one shell line per task with `#ADAPTOR` lines, or JSON Lines.

Reading is the only effect in here. Every error names the file and the line.

In JSON Lines `cpus`, `mem`, `gpus`, `nodes` and `time` say what one task needs in place of what the bag says.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import AtLeast1
from adaptor.bagfile.comments import directive_in_list
from adaptor.bagfile.options import add_options
from adaptor.bagfile.other_kinds import is_json_lines, other_file, other_line
from adaptor.bagfile.own_options import OwnOptions, explained
from adaptor.errors import BagFileError
from adaptor.guard_rails import is_shell
from adaptor.option_kinds import plain_text
from adaptor.resources import OwnNeeds
from adaptor.scheduling.task_links import LinkError, resolved
from adaptor.units import shortened


class _Line(OwnOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    argv: list[str] | None = None
    command: str | None = None
    cwd: str | None = None
    name: str | None = None
    id: str | None = None
    after: tuple[int | str, ...] = ()
    after_any: tuple[int | str, ...] = ()
    nodes: AtLeast1 | None = None


_decoder = msgspec.json.Decoder(_Line)


def parse_json_lines(text: str, source: str, *, more: bool = False) -> list[TaskInput]:
    """Blank lines are skipped. `more`: the tasks are for a bag that may have others already.

    Raises:
        BagFileError: a line is not such an object, or names a task that cannot be, with its number.
    """
    tasks: list[TaskInput] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            tasks.append(_task(_decoder.decode(line), number))
            lines.append(number)
        except (msgspec.DecodeError, ValueError) as error:
            problem = _lone_surrogate(line) or explained(str(error), _Line)
            raise BagFileError(f"{source}:{number}: {problem[:500]}") from None
    try:
        own = {task.id for task in tasks}
        if more:
            resolved(tasks, 2**62, lambda ids: dict.fromkeys(ids - own, 0))  # more than any bag has
        else:
            resolved(tasks, 0, lambda _: {})
    except LinkError as error:
        raise BagFileError(f"{source}:{lines[error.index]}: {error}") from None
    return tasks


def _lone_surrogate(line: str) -> str:
    """The error of half a character in UTF-16, which msgspec takes for the end of the line; empty: none."""
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        return f"{half} is half of a character: write both halves, or the character itself"
    except (ValueError, RecursionError):
        pass
    return ""


def _task(line: _Line, number: int) -> TaskInput:
    if (line.argv is None) == (line.command is None):
        raise ValueError("exactly one of 'argv' and 'command' is required")
    if line.argv is not None and not (line.argv and line.argv[0]):
        raise ValueError("argv: the first word must name a program")
    if line.command is not None and not line.command.strip():
        raise ValueError("command: must not be empty")
    if line.cwd == "":
        raise ValueError("cwd: must not be empty")
    command = line.argv if line.argv is not None else line.command
    assert command is not None
    words = command if isinstance(command, list) else [command]
    for text in (*words, line.cwd or "", line.name or "", line.id or ""):
        plain_text(text)
    if line.id == "":
        raise ValueError("id: must not be empty")
    needs = msgspec.structs.replace(line.needs, nodes=line.nodes)
    return TaskInput(
        command,
        line.name,
        line.cwd,
        line.environment,
        id=line.id,
        after=line.after,
        after_any=line.after_any,
        needs=None if needs == OwnNeeds() else needs,
        line=number if needs != OwnNeeds() or line.id is not None or line.after or line.after_any else 0,
    )


_DIRECTIVE = re.compile(r"#ADAPTOR(?:\s+(?P<options>.*))?$")


class BagFile(msgspec.Struct, frozen=True):
    """The tasks of a file, and the options that its `#ADAPTOR` lines set."""

    tasks: list[TaskInput]
    options: dict[str, Any] = {}
    """Values by field of `BagSpec` or `BagInput`."""
    lines: dict[str, int] = {}
    """Number of the line that sets an option, by the same fields."""


def source_name(path: str) -> str:
    """The name of a file in messages (`-`: standard input)."""
    return "standard input" if path == "-" else path


def parse_bag(
    data: bytes, path: str, now: float, json_lines: bool = False, *, more: bool = False, shell: str = ""
) -> BagFile:
    """The bag that a file holds; `.jsonl` and `.ndjson` are JSON Lines in any case, and what begins with a
    JSON object.

    Args:
        now: epoch seconds, for options that take a time from now.
        more: the tasks are for a bag that may have others already.
        shell: what runs the lines, whatever the file says; empty: as it says.

    Raises:
        BagFileError: a line is bad (its number is named), or there is no task.
    """
    source = source_name(path)
    text = decode(data, source)
    if json_lines or path.endswith((".jsonl", ".ndjson")) or is_json_lines(text):
        bag = BagFile(parse_json_lines(text, source, more=more))
    else:
        bag = parse_shell_lines(text, source, now, shell)
    if not bag.tasks:
        raise BagFileError(f"{source}: contains no task; write one shell line per task")
    return bag


def read_data(path: str) -> bytes:
    """The text of a file (`-`: standard input). Raises BagFileError: it cannot be read."""
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) else error
        raise BagFileError(f"{path}: cannot be read: {problem}") from error


def decode(data: bytes, source: str) -> str:
    """UTF-8 text without NUL bytes; a byte order mark is dropped.

    Raises:
        BagFileError: with the number of the first bad line.
    """
    nul = data.find(b"\0")
    if nul >= 0:
        line = _line_at(data, nul)
        raise BagFileError(f"{source}:{line}: contains a NUL byte, which no command line can carry")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from behind the byte order mark that it has dropped.
        start = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        raise BagFileError(
            f"{source}:{_line_at(data, start)}: byte 0x{data[start]:02x} is not UTF-8 text"
        ) from error


def _line_at(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def parse_shell_lines(text: str, source: str, now: float, shell: str = "") -> BagFile:
    """One task per line; blank lines and `#` comments are skipped, `#ADAPTOR key=value …` sets options.

    `shell`: as in `parse_bag`; lines for another program than a shell may be anything.

    Raises:
        BagFileError: a bad `#ADAPTOR` line, part of a script or of another kind of file, with its number.
    """
    tasks: list[TaskInput] = []
    options: dict[str, Any] = {}
    lines: dict[str, int] = {}
    in_shell = is_shell(shlex.split(shell))
    if why := other_file(text):
        raise BagFileError(f"{source}: {why}")
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line:
            continue
        if why := _no_task(line, in_shell=in_shell):
            raise BagFileError(f"{source}:{number}: {why}")
        try:
            if not line.startswith("#"):
                tasks.append(TaskInput(plain_text(line)))
            elif directive := _DIRECTIVE.match(line):
                add_options(options, directive["options"] or "", now)
                lines.update(dict.fromkeys(options.keys() - lines.keys(), number))
                in_shell = is_shell(shlex.split(shell or options.get("shell", "")))
        except ValueError as error:
            raise BagFileError(f"{source}:{number}: {error}") from None
    return BagFile(tasks, options, lines)


_AS_SCRIPT = "begin the file with '#!/bin/bash' to submit it as one script"


def _no_task(line: str, *, in_shell: bool) -> str:
    """Why a line, which is stripped, is neither a task nor a comment; empty: it may be one."""
    if "\r" in line:
        return "holds a carriage return, the line end of old Macs; convert the file: tr '\\r' '\\n'"
    if (why := directive_in_list(line, _AS_SCRIPT)) is not None:
        return f"{line.split()[0] if line.startswith('#') else shortened(line)} {why}"
    if line.startswith("#") or not in_shell:
        return ""
    if why := other_line(line):
        return f"{shortened(line)} {why}"
    if (why := script_part(line)) is not None:
        return (
            f"{shortened(line)} {why}, while each line of a list is a task of its own; join what belongs to"
            f" one task by &&, or {_AS_SCRIPT}"
        )
    return ""


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
    if _HERE.search(_PERHAPS_END.sub(lambda found: found[0] if found[1] else "''", line)):
        return "begins a here-document"
    if _ALONE.match(line) and not _GOES_ON.search(bare):
        return "changes nothing for the other lines"
    return None
