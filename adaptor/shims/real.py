"""The real commands: found in PATH behind the shims, called with what is theirs.

The standard library alone, and of that what starts fast: tasks and `start` wait for these imports.
"""

from __future__ import annotations

import os
import sys

from adaptor.defaults import FIRST_JOB, REAL_COMMANDS, SHIM_RULES

TYPE_CHECKING = False  # `typing` takes longer to import than all else here
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

RULES = SHIM_RULES
PASSED = "ADAPTOR_SHIM_PASSED"
"""The variable that says which process of ours became, or asks, a real command: host, number, path; before it
the paths of commands that called the shims again."""
_OF_TASKS = ("squeue", "scancel", "sacct", "scontrol")  # commands that are asked for tasks inside a task, too


def leave_path() -> str:
    """Take folders of shims out of PATH, so that what runs from here on finds the real commands; PATH before
    it."""
    whole = os.environ.get("PATH", os.defpath)
    places = whole.split(os.pathsep)
    kept = [place for place in places if place and not os.path.exists(os.path.join(place, RULES))]  # noqa: PTH110, PTH118
    os.environ["PATH"] = os.pathsep.join(kept)
    return whole


def found(name: str, but: Sequence[str] = ()) -> str | None:
    """The path of a real command, not of a link to a shim, nor one of `but`; None: there is none.

    After `leave_path`.
    """
    for place in os.environ["PATH"].split(os.pathsep):
        path = os.path.join(place, name)  # noqa: PTH118
        if path in but or not os.access(path, os.X_OK) or not os.path.isfile(path):  # noqa: PTH113
            continue
        if not _is_shim(path):
            return path
    return None


def _is_shim(path: str) -> bool:
    return os.path.exists(os.path.join(os.path.dirname(os.path.realpath(path)), RULES))  # noqa: PTH110, PTH118, PTH120


def _passed(path: str) -> str:
    """The value of PASSED for a command, behind those that have led to it."""
    paths = [*callers(os.environ), path]
    return f"{os.uname().nodename} {os.getpid()} {os.pathsep.join(paths)}"


def callers(environment: Mapping[str, str]) -> list[str]:
    """Commands that were taken for the real ones and have called the shims again, as a site's wrapper may.

    Empty: none; this process is no part of them, though its job may have inherited the variable.
    """
    host, _, rest = environment.get(PASSED, "").partition(" ")
    number, _, paths = rest.partition(" ")
    if host != os.uname().nodename or not number.isdigit():
        return []
    process = os.getpid()
    while process > 1:
        if process == int(number):
            return paths.split(os.pathsep)
        try:
            with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123
                process = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return []
    return []


def in_task(environment: Mapping[str, str]) -> bool:
    return "ADAPTOR_TASK_ID" in environment


def in_job(environment: Mapping[str, str]) -> bool:
    """Whether this is part of a job of the scheduler's."""
    return "SLURM_JOB_ID" in environment or "PBS_JOBID" in environment


def real_is_meant(environment: Mapping[str, str], name: str, arguments: Sequence[str]) -> bool:
    """Whether the shims must not stand in the way: of our own daemon, and where a task asks for no task."""
    if any(environment.get(variable) == value for variable, value in REAL_COMMANDS.items()):
        return True
    return in_task(environment) and not (name in _OF_TASKS and any(map(_names_ours, arguments)))


def _names_ours(argument: str) -> bool:
    numbers = "".join(letter if letter.isdigit() else " " for letter in argument).split()
    return any(int(number) >= FIRST_JOB for number in numbers)


def with_own_array(environment: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """Inside an element of an array: the array's number, which is that of a bag, as a job number of ours."""
    array, element = environment.get("SLURM_ARRAY_JOB_ID", ""), environment.get("SLURM_JOB_ID", "")
    if not (in_task(environment) and array.isdigit() and element.isdigit() and int(array) < FIRST_JOB):
        return list(arguments)
    import re

    first = str(int(element) - int(environment["ADAPTOR_TASK_ID"]))
    own = re.compile(rf"\[[^]]*]|(?:(?<=^-j)|(?<![\w.])){array}(?![\d.])")
    return [own.sub(lambda found: first if found[0] == array else found[0], word) for word in arguments]


def tell(text: str) -> None:
    print(f"adaptor: {text}", file=sys.stderr, flush=True)


class RealCommand(BaseException):
    """The process that the caller started must become the real command."""

    def __init__(self, path: str, words: Sequence[str], stdin: int | None = None) -> None:
        """`stdin`: a descriptor of its standard input; None: that of the caller."""
        super().__init__(path)
        self.path = path
        self.words = list(words)
        self.stdin = stdin

    def become(self, whole: str) -> NoReturn:
        """`whole`: PATH with the shims, which a job that is submitted gets, as its user's shell has it."""
        import _signal  # type: ignore[import-not-found]  # `signal` imports much

        sys.stdout.flush()
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)  # Python ignores it, and programs inherit that
        if self.stdin is not None:
            os.dup2(self.stdin, 0)
        os.environ[PASSED] = _passed(self.path)
        if self.words[0] == "sbatch" and not in_task(os.environ):
            os.environ["PATH"] = whole
        os.execv(self.path, self.words)  # noqa: S606 (no shell is wanted)


def pass_on(
    name: str,
    arguments: Sequence[str],
    why: str = "",
    data: bytes | None = None,
    but: Sequence[str] = (),
) -> NoReturn:
    """Become the real command.

    Args:
        why: said on standard error.
        data: its standard input.
        but: commands that are not the real one: they have called the shims.

    Raises:
        RealCommand: always, but
        SystemExit: (1) no scheduler has it.
    """
    path = found(name, but)
    if path is None and but:
        tell(f"{name}: {but[-1]} calls it again, and PATH has no other {name} for the scheduler's")
        sys.exit(1)
    if path is None:
        tell(f"{why or f'{name} has nothing to do here'}; no {name} of a scheduler is in PATH")
        sys.exit(1)
    if why:
        tell(f"to the scheduler: {why}")
    raise RealCommand(path, [name, *arguments], None if data is None else _opened(data))


def _opened(data: bytes) -> int:
    """A descriptor from which the data can be read."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())


def asked(
    name: str, arguments: Sequence[str], environment: Mapping[str, str] = os.environ
) -> tuple[str, int]:
    """Output of the real command, and its exit code; its errors go to ours. Empty and 0: it is not
    installed."""
    import subprocess

    path = found(name)
    if path is None:
        return "", 0
    variables = {**environment, PASSED: _passed(path)}
    done = subprocess.run([path, *arguments], stdout=subprocess.PIPE, env=variables, check=False)
    return done.stdout.decode(errors="replace"), done.returncode
