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
"""The variable that says which process of ours became, or asks, a real command: host, number, path."""
_OF_TASKS = ("squeue", "scancel", "sacct", "scontrol")  # commands that are asked for tasks inside a task, too


def leave_path() -> None:
    """Take folders of shims out of PATH: what runs from here on finds the real commands."""
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [place for place in places if place and not os.path.exists(os.path.join(place, RULES))]  # noqa: PTH110, PTH118
    os.environ["PATH"] = os.pathsep.join(kept)


def found(name: str) -> str | None:
    """The path of a real command, not of a link to a shim; None: there is none. After `leave_path`."""
    for place in os.environ["PATH"].split(os.pathsep):
        path = os.path.join(place, name)  # noqa: PTH118
        if os.access(path, os.X_OK) and os.path.isfile(path) and not _is_shim(path):  # noqa: PTH113
            return path
    return None


def _is_shim(path: str) -> bool:
    return os.path.exists(os.path.join(os.path.dirname(os.path.realpath(path)), RULES))  # noqa: PTH110, PTH118, PTH120


def _passed(path: str) -> str:
    return f"{os.uname().nodename} {os.getpid()} {path}"


def under_itself(environment: Mapping[str, str]) -> str:
    """The command that was taken for the real one and has called the shims again; empty: none."""
    host, _, rest = environment.get(PASSED, "").partition(" ")
    number, _, path = rest.partition(" ")
    if host != os.uname().nodename or not number.isdigit():
        return ""
    process = os.getpid()
    while process > 1:
        if process == int(number):
            return path
        try:
            with open(f"/proc/{process}/stat", "rb") as file:  # noqa: PTH123
                process = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return ""
    return ""


def in_task(environment: Mapping[str, str]) -> bool:
    return "ADAPTOR_TASK_ID" in environment


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

    def become(self) -> NoReturn:
        import _signal  # type: ignore[import-not-found]  # `signal` imports much

        sys.stdout.flush()
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)  # Python ignores it, and programs inherit that
        if self.stdin is not None:
            os.dup2(self.stdin, 0)
        os.environ[PASSED] = _passed(self.path)
        os.execv(self.path, self.words)  # noqa: S606 (no shell is wanted)


def pass_on(name: str, arguments: Sequence[str], why: str = "", data: bytes | None = None) -> NoReturn:
    """Become the real command. `why`: said on standard error; `data`: its standard input.

    Raises:
        RealCommand: always, but
        SystemExit: (1) no scheduler has it.
    """
    path = found(name)
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
