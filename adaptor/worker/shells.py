"""The shell that runs the lines of tasks: which one, and what it needs for `conda activate`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from adaptor.guard_rails import EarlySignal, is_shell

_BASH = "bash"
_EVERYWHERE = "/bin/sh"
_ACTIVATES = re.compile(r"(?<![\w./-])(conda|mamba|micromamba)\s+(?:activate|deactivate)\b")

Find = Callable[[str, Mapping[str, str]], str]
"""The file of a program by the PATH of an environment; raises FileNotFoundError."""


def shell_words(wanted: str, environment: Mapping[str, str], find: Find) -> list[str]:
    """The program and the options before `-c`.

    Args:
        wanted: what the bag or the site says; empty: bash where the node has it, as in most batch scripts,
            else /bin/sh.
    """
    if wanted:
        return shlex.split(wanted)
    try:
        return [find(_BASH, environment)]
    except FileNotFoundError:
        return [_EVERYWHERE]


def line_words(shell: Sequence[str], line: str, signal: EarlySignal | None) -> list[str]:
    """Words by which a shell runs a line, and outlives the signal of the bag; another program gets it."""
    return [*shell, "-c", line if signal is None or not is_shell(shell) else signal.survived_by(line)]


def with_activation(line: str, environment: Mapping[str, str]) -> str:
    """The line, after the definition of `conda` or `mamba` where the line activates an environment.

    These are functions of an interactive shell, and no shell passes them on. Where they are defined follows
    from variables that they have set: CONDA_EXE and MAMBA_EXE. A function that the environment has wins.
    """
    name = found[1] if (found := _ACTIVATES.search(line)) else ""
    if not name or f"BASH_FUNC_{name}%%" in environment:
        return line
    if name == "conda" and (program := environment.get("CONDA_EXE")):
        hook = f"{program.rpartition('/bin/')[0]}/etc/profile.d/conda.sh"
        return f"[ ! -r {shlex.quote(hook)} ] || . {shlex.quote(hook)}\n{line}"
    if name != "conda" and (program := environment.get("MAMBA_EXE")):
        return f'eval "$({shlex.quote(program)} shell hook --shell bash)"\n{line}'
    return line
