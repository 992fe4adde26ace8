"""The kind of a task: what stays the same from one bag to the next that runs the same program. Pure.

It is the programs of its command and the names of their options: no file names, no values, no interpreters
and no wrappers. Two commands that look the same are of one kind, whatever the shell would make of them.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec, TaskKind
from adaptor.kinds.wrappers import behind_wrappers, words_of

LOOKED_AT = 2000
"""Tasks of a bag by which its kinds are counted, evenly over the file."""
MOST_KINDS = 8
"""Of a bag; the rarer ones are not remembered."""
_LONGEST_LINE = 4000
"""Letters of a command that are looked at, or words."""
_NAMED = 3
"""Programs in the name of a kind."""
_LONGEST_NAME = 80

_TOKEN = re.compile(
    r"""(?:[^\s'"\\;|&()<>]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+|[;|&()\n]+|[<>]+|['"\\]""", re.DOTALL
)
_QUOTES = re.compile(r"""\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)\"""", re.DOTALL)
_NUMBER = re.compile(r"-?[\d.,:]+$")
_ASIDE = words_of(
    "cd . source module ml conda export unset set ulimit umask trap eval exit wait true"
    " false : test [ [[ echo printf mkdir rmdir rm cp mv ln touch chmod cat tee pwd date hostname sleep ls"
)
"""Commands that surround the work; they are the work where a line has nothing else."""


def kinds_of(spec: BagSpec, tasks: Sequence[TaskInput]) -> tuple[TaskKind, ...]:
    """The kinds of a bag's tasks, the most frequent first."""
    if spec.kind is not None:
        return (TaskKind(_key("named", spec.kind), spec.kind, len(tasks)),)
    if not tasks:
        return ()
    step = -(-len(tasks) // LOOKED_AT)
    counts = Counter(kind_of(spec, task) for task in tasks[::step])
    return tuple(TaskKind(key, name, count * step) for (key, name), count in counts.most_common(MOST_KINDS))


def kind_of(spec: BagSpec, task: TaskInput) -> tuple[str, str]:
    """The key of a task's kind, and its name for people."""
    if spec.kind is not None:
        return _key("named", spec.kind), spec.kind
    if task.call is not None:
        name = str(task.command)
        return _key("call", name), name[:_LONGEST_NAME]
    folder = task.cwd or spec.cwd
    if spec.script is not None:
        name = task.command[0] if isinstance(task.command, list) else task.command
        return _key("script", posixpath.join(spec.cwd, name)), name[:_LONGEST_NAME]
    if isinstance(task.command, list):
        programs = [*_programs([task.command[:_LONGEST_LINE]], folder)]
    else:
        programs = [*_programs([*_commands(task.command)], folder)]
    names = [name for name, _ in programs[:_NAMED]]
    return _key("command", *(key for _, key in programs)), " + ".join(names)[:_LONGEST_NAME] or "sh"


def _key(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(errors="replace"), digest_size=12).hexdigest()


def _commands(line: str) -> Iterator[list[str]]:
    """The simple commands of a shell line, each as its words, without redirections and comments."""
    words: list[str] = []
    skip = False
    for token in _TOKEN.findall(line[:_LONGEST_LINE]):
        if token[0] in ";|&()\n":
            if not skip:  # else the & of 2>&1
                yield words
                words = []
        elif token[0] in "<>":
            skip = True
        elif skip:
            skip = False
        elif token[0] == "#":
            break
        else:
            words.append(_QUOTES.sub(_unquoted, token))
    yield words


def _unquoted(found: re.Match[str]) -> str:
    return next((text for text in found.groups() if text is not None), "")


def _programs(commands: list[list[str]], folder: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Of each program that does the work: its name for people, and what tells it from others."""
    found = [ran for words in commands if (ran := behind_wrappers(words)) is not None]
    work = [ran for ran in found if ran.program not in _ASIDE] or found
    for ran in work:
        if ran.line is not None and depth < _NAMED:
            yield from _programs([*_commands(ran.line)], folder, depth + 1)
        elif ran.code is not None:
            yield f"{ran.program} {ran.how}", f"{ran.program} {ran.how} {re.sub(r'[0-9]+', '#', ran.code)}"
        else:
            name = f"{ran.how} {ran.program}".strip()
            is_path = "/" in ran.program or ran.is_file
            where = posixpath.normpath(posixpath.join(folder, ran.program)) if is_path else name
            options = " ".join(sorted(set(_options(ran.arguments))))
            yield name if not is_path else posixpath.basename(where), f"{where} {options}"


def _options(arguments: Sequence[str]) -> Iterator[str]:
    """The names of options, without their values."""
    for word in arguments:
        if word == "--":
            return
        if word.startswith("-") and len(word) > 1 and not _NUMBER.match(word):
            name = word.partition("=")[0]
            yield name if name.startswith("--") else re.sub(r"[\d./].*", "", name)
