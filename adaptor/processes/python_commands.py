"""Command lines that start Python, whatever lies in the folder where they are run.

`python -m` and `python -c` look for modules in the current folder first, so a `json.py` in a home directory
would stand in for the library's. `-P` prevents that, but only from Python 3.11 on.
"""

from __future__ import annotations

_LIBRARY_FIRST = "import sys; sys.path[:] = [place for place in sys.path if place]"
_RUN_MODULE = (
    f"{_LIBRARY_FIRST}; import runpy; runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


def module_command(python: str, module: str, *arguments: str) -> tuple[str, ...]:
    """As `python -m module`. The module may be found by PYTHONPATH or in the user's own site-packages."""
    return (python, "-c", _RUN_MODULE, module, *arguments)


def code_command(python: str, code: str, *arguments: str) -> tuple[str, ...]:
    """As `python -c code`; `code` may have several lines."""
    return (python, "-c", f"{_LIBRARY_FIRST}\n{code}", *arguments)


def isolated_command(python: str, module: str, *arguments: str) -> tuple[str, ...]:
    """The module as this interpreter has it installed: nothing of the user counts, no variable and no folder.

    Its words mean the same to every shell, so that they can stand behind a launcher.
    """
    return (python, "-I", "-m", module, *arguments)
