"""Names of output files as sbatch and qsub take them → the patterns of `BatchScript`.

What is known at submission is put in here; what only nodes and the daemon know stays: `%A`, `%a`, `%j` and
`%N`.
"""

from __future__ import annotations

import os
import re

_SLURM = re.compile(r"%(?P<width>\d{0,2})(?P<letter>[A-Za-z])|%%?")
_PBS = re.compile(r"\^array_index\^|\$\{?(?P<name>PBS_\w+)\}?|%")
_GRID_ENGINE = re.compile(r"\$\{?(?P<name>HOME|HOSTNAME|JOB_ID|JOB_NAME|TASK_ID|USER)\}?|%")


def literal(text: str) -> str:
    """A text that stands for itself in a pattern."""
    return text.replace("%", "%%")


def of_slurm(text: str, name: str, user: str, folder: str) -> str:
    """The pattern of an `--output` or `--error` of sbatch, "filename pattern", absolute."""
    if "\\" in text:  # sbatch: nothing is replaced then
        return _below(folder, literal(text.replace("\\", "")))

    def value(match: re.Match[str]) -> str:
        match match["letter"]:
            case "A" | "a" | "j" as letter:
                return f"%{match['width']}{letter}"
            case "J":
                return "%j"
            case "N":
                return "%N"
            case "x":
                return literal(name)
            case "u":
                return literal(user)
            case "n" | "t":
                return "0".zfill(int(match["width"] or 1))
            case "s":
                return "batch"
        return literal("%" if match[0] == "%%" else match[0])

    return _below(folder, _SLURM.sub(value, text))


def of_pbs(text: str, name: str, user: str, folder: str, *, array: bool, suffix: str) -> str:
    """The pattern of an `-o` or `-e` of qsub, absolute. `suffix`: `o` or `e`, of the usual name.

    In a folder that is named there, OpenPBS calls the files by the job: `12.server.OU`, `12[3].server.ER`.
    """

    def value(match: re.Match[str]) -> str:
        if match[0] == "%":
            return "%%"
        match match["name"]:
            case None | "PBS_ARRAYID" | "PBS_ARRAY_INDEX":
                return "%a"
            case "PBS_JOBID":
                return "%A[%a].adaptor" if array else "%A.adaptor"
            case "PBS_JOBNAME":
                return literal(name)
            case "PBS_O_LOGNAME":
                return literal(user)
        return match[0]

    usual = f"{literal(name)}.{suffix}%A" + (".%a" if array else "")
    if not text:
        return _below(folder, usual)
    found = _below(folder, _PBS.sub(value, text))
    if not text.endswith("/") and not os.path.isdir(found):  # noqa: PTH112
        return found
    by_job = ("%A[%a].adaptor" if array else "%A.adaptor") + {"o": ".OU", "e": ".ER"}[suffix]
    return f"{found.rstrip('/')}/{by_job}"


def of_grid_engine(text: str, name: str, user: str, folder: str, *, array: bool, suffix: str) -> str:
    """The pattern of an `-o` or `-e` of Grid Engine's qsub, absolute. `suffix`: `o` or `e`, of the usual
    name."""
    known = {"JOB_ID": "%A", "TASK_ID": "%a" if array else "undefined", "HOSTNAME": "%N", "HOME": "~"}
    known |= {"JOB_NAME": literal(name), "USER": literal(user)}
    usual = f"{literal(name)}.{suffix}%A" + (".%a" if array else "")
    found = _below(folder, _GRID_ENGINE.sub(lambda match: known.get(match["name"], "%%"), text) or usual)
    if text.endswith("/") or (text and os.path.isdir(found)):  # noqa: PTH112
        return f"{found.rstrip('/')}/{usual}"
    return found


def constant_folder(pattern: str) -> str:
    """The folder that all files of a pattern are below."""
    return os.path.dirname(pattern.partition("%")[0]) or "/"  # noqa: PTH120


def below(folder: str, path: str) -> str:
    """A path as seen from a folder, without links being looked at."""
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path)))  # noqa: PTH111, PTH118


def _below(folder: str, pattern: str) -> str:
    return os.path.normpath(os.path.join(literal(folder), os.path.expanduser(pattern)))  # noqa: PTH111, PTH118
