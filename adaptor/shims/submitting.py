"""Submitting by `sbatch`: a small job becomes a task of an open bag, all others go to the real command."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from adaptor.bagfile.scripts.getopt import GivenOption, OptionError
from adaptor.bagfile.scripts.sbatch import SBATCH
from adaptor.bagfile.scripts.script import options_of
from adaptor.errors import UsageError, os_problem
from adaptor.shims.jobs import ACTIVE, Jobs, Named
from adaptor.shims.open_bags import submitted
from adaptor.shims.real import RULES, pass_on, tell
from adaptor.shims.rules import DependencyError, Rules, TooLarge, dependencies
from adaptor.shims.small_jobs import SmallJob
from adaptor.shims.waiting import wait_for_real

_WRAP = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n"
_ABOUT = ("--help", "--usage", "--version", "-V", "-h")  # questions about the real command
_PAUSE = 1.0  # seconds between two looks at jobs that `--wait` waits for


def sbatch(arguments: list[str], folder: Path) -> int:
    """The exit code of `sbatch`, or none: the real one has taken this process over."""
    if not {*arguments}.isdisjoint(_ABOUT):
        pass_on("sbatch", arguments)
    data, piped = b"", False
    try:
        given, rest = SBATCH.table.leading(arguments)
        piped = not rest and all(each.name != "wrap" for each in given)
        data, name, rest = _script(given, rest)
        if not data.startswith(b"#!"):
            raise TooLarge("the file is no script")
        of_file, problems = options_of(data.decode(errors="replace"), SBATCH, lambda _name: False)
        if problems:
            raise problems[0]
        given = [*of_file, *given]
        numbers = _numbers_of(data, name, given, rest, folder)
        return _tell(numbers, {each.name for each in given})
    except (TooLarge, OptionError) as error:
        pass_on("sbatch", arguments, str(error), data if piped else None)
    except DependencyError as error:
        tell(str(error))
        print("sbatch: error: Batch job submission failed: Job dependency problem", file=sys.stderr)
        return 1


def _numbers_of(
    data: bytes, name: str, given: Sequence[GivenOption], arguments: Sequence[str], folder: Path
) -> list[int]:
    """The numbers of the job, or of its elements.

    Raises:
        TooLarge: it is a job for the scheduler.
        DependencyError: it is one, and the scheduler cannot have it, or its dependency cannot be followed.
        AdaptorError: it may be submitted, or not.
    """
    awaited = dependencies(given)
    try:
        small = SmallJob(data, name, given, arguments, _rules(folder), awaited)
        wait_for_real(awaited.ok_there, awaited.any_there)
        return submitted(small)
    except TooLarge as error:
        if awaited.ok or awaited.any:
            problem = f"{error}; and the scheduler does not know the jobs for which it waits"
            raise DependencyError(problem) from error
        raise


def _script(given: Sequence[GivenOption], rest: list[str]) -> tuple[bytes, str, list[str]]:
    """The script, the usual name of the job, and the script's arguments. Raises TooLarge."""
    wrapped = [each.value for each in given if each.name == "wrap"]
    if wrapped:
        if rest:
            raise TooLarge("--wrap and a script")
        return _WRAP.format(wrapped[-1]).encode(errors="surrogateescape"), "wrap", []
    if not rest:
        return sys.stdin.buffer.read(), "sbatch", []
    try:
        return Path(rest[0]).read_bytes(), Path(rest[0]).name, rest[1:]
    except OSError as error:
        raise TooLarge(os_problem(error)) from error


def _rules(folder: Path) -> Rules:
    try:
        return msgspec.json.decode((folder / RULES).read_bytes(), type=Rules)
    except FileNotFoundError:
        return Rules()
    except msgspec.DecodeError as error:
        raise UsageError(f"{folder / RULES}: {error}") from None


def _tell(numbers: Sequence[int], names: set[str]) -> int:
    job = numbers[0]
    if "parsable" in names:
        print(job, flush=True)
    elif "quiet" not in names:
        print(f"Submitted batch job {job}", flush=True)
    if "wait" not in names:
        return 0
    while True:
        found = Jobs().of([Named(job)])
        if not any(each.state in ACTIVE for each in found):
            return max((each.code or int(each.state != "COMPLETED") for each in found), default=1)
        time.sleep(_PAUSE)
