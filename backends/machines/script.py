"""What a distant shell reads from its input, and what it prints: pure text.

Whatever the login shell of the user, it only sees `/bin/bash -s`. The program, its arguments and its
variables come through the input, quoted for a POSIX shell, so they stand in no command line of ours.
The braces around the lines make a text that was cut short a mistake, which is not executed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import msgspec

SHELL = ("/bin/bash", "-s")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS_OWN = frozenset(
    {"BASHOPTS", "BASH_ARGC", "EUID", "PPID", "SHELLOPTS", "UID", "PWD", "OLDPWD", "SHLVL", "_"}
)
"""A shell sets these itself, and some of them cannot be changed."""


class Printed(msgspec.Struct, frozen=True):
    """What was printed between the marks, and the exit status."""

    status: int
    output: bytes
    errors: bytes


def script(lines: Sequence[str], mark: str) -> bytes:
    """The text that runs `lines` with no input but what follows the text, and tells their exit status."""
    body = "\n".join(lines)
    text = (
        f'{{\necho {mark}; echo {mark} >&2\n(\n{body}\n)\nprintf "\\n%s %s\\n" {mark} "$?" >&2\nexit 0\n}}\n'
    )
    return encoded(text)


def talk(arguments: Sequence[str], mark: str) -> bytes:
    """The text that becomes a program, which has the rest of the input; `mark` is printed before."""
    return encoded(f"{{\necho {mark}\nexec {shlex.join(arguments)}\n}}\n")


def printed(output: bytes, errors: bytes, mark: str) -> Printed | None:
    """What the lines of `script` have printed; None where they were not seen to end.

    What the login shell itself prints before is left out.
    """
    sign = mark.encode()
    _, begun, said = output.partition(sign + b"\n")
    _, warned, rest = errors.partition(sign + b"\n")
    complaints, _, status = rest.rpartition(b"\n" + sign + b" ")
    if not begun or not warned or not re.fullmatch(rb"\d+\n", status):
        return None
    return Printed(int(status), said, complaints)


def command_lines(
    arguments: Sequence[str], wanted: Mapping[str, str], present: Mapping[str, str], timeout: float
) -> list[str]:
    """A command with exactly the wanted variables, ended with its children after `timeout` seconds.

    Args:
        present: the variables that the shell has from the start.
    """
    lines = ["limit=$(command -v timeout) || { echo 'timeout: not found' >&2; exit 127; }"]
    removed = [name for name in present if name not in wanted and name not in _SHELLS_OWN]
    named = [name for name in removed if _NAME.fullmatch(name)]
    odd = [name for name in removed if not _NAME.fullmatch(name)]
    if named:
        lines.append(f"unset -v {' '.join(named)}")
    for name, value in wanted.items():
        if present.get(name) != value and _NAME.fullmatch(name) and name not in _SHELLS_OWN:
            lines.append(f"export {name}={shlex.quote(value)}")
    without = [word for name in odd for word in ("-u", name)]
    lines.append(
        f'exec "$limit" -k 2 {timeout:.3f} /usr/bin/env {shlex.join([*without, *arguments])} </dev/null'
    )
    return lines


def encoded(text: str) -> bytes:
    """Names of files and values of variables may hold any bytes."""
    return text.encode(errors="surrogateescape")
