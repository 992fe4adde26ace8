"""Command lines that start other programs: Python, whatever lies where it is run; and their descriptors.

`python -m` and `python -c` look for modules in the current folder first, so a `json.py` in a home directory
would stand in for the library's. `-P` prevents that, but only from Python 3.11 on.

This process may have all descriptors that it is allowed to have, and its children what was usual.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from pathlib import Path

_ROOT = str(Path(__file__).parents[2])
_LIBRARY_FIRST = "import sys; sys.path[:] = [place for place in sys.path if place]"
_RUN_MODULE = (
    f"{_LIBRARY_FIRST}; import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def module_command(python: str, module: str, *arguments: str) -> tuple[str, ...]:
    """The command for `python -m module`, which is found by PYTHONPATH or in the user's site-packages too."""
    return (python, "-c", _RUN_MODULE, module, *arguments)


def code_command(python: str, code: str, *arguments: str) -> tuple[str, ...]:
    """The command for `python -c code`; `code` may have several lines."""
    return (python, "-c", f"{_LIBRARY_FIRST}\n{code}", *arguments)


def isolated_command(python: str, module: str, *arguments: str) -> tuple[str, ...]:
    """The module as this interpreter has it installed: nothing of the user counts, no variable and no folder.

    Its words mean the same to every shell, so that they can stand behind a launcher.
    """
    return (python, "-I", "-m", module, *arguments)


def bare_command(module: str, *arguments: str) -> tuple[str, ...]:
    """The `main` of a module of this package, which has the standard library besides: it starts fast.

    As a module it is compiled already; -I and -S leave out what it does not need.
    """
    code = f"import sys; sys.path.insert(0, {_ROOT!r}); from {module} import main; main()"
    return (sys.executable, "-I", "-S", "-c", code, *arguments)


_LONGEST_FIRST = 127  # bytes of a `#!` line that every Linux takes


def first_line(python: str) -> str:
    """The `#!` line by which a file starts Python as `bare_command` does, without a shell.

    Empty: it would be too long, or the path has a blank.
    """
    line = f"#!{python} -IS\n"
    return line if len(line.encode()) <= _LONGEST_FIRST and len(python.split()) == 1 else ""


def bare_script(module: str, *arguments: str) -> str:
    """The content of an executable file that does as `bare_command`, with its own arguments behind."""
    first = first_line(sys.executable)
    if not first:
        import shlex

        return f'#!/bin/sh\nexec {shlex.join(bare_command(module, *arguments))} "$@"\n'
    path = f"import sys\nsys.path.insert(0, {_ROOT!r})\nsys.argv[1:1] = {list(arguments)!r}\n"
    return f"{first}{path}from {module} import main\nmain()\n"


_MOST = 65_536  # more are of no use to a daemon, and some libraries take memory for each
_usual: list[int] = []  # the soft limit that this process was started with; empty: it has it still


def raise_limit() -> int:
    """Raise the soft limit to the hard one; the descriptors that may be open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _MOST if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    _usual.append(soft)
    return wanted


def with_usual_limit(arguments: Sequence[str]) -> list[str]:
    """The command, with the limit that its user knows: Slurm hands it on to the tasks of a job."""
    if not _usual:
        return list(arguments)
    return ["/bin/sh", "-c", 'ulimit -S -n "$0"; exec "$@"', str(_usual[0]), *arguments]
