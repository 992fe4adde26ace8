"""The options of qsub: OpenPBS's qsub(1B), and what Torque's adds (`-t`, `-d`, `nodes=1:ppn=4`)."""

from __future__ import annotations

import re

import msgspec

from adaptor.bagfile.scripts.asked import (
    RUNS_AGAIN,
    Command,
    Follow,
    ScriptOptions,
    SiteWish,
    Unsupported,
    depend,
    field,
    of_bag,
    of_site,
    qsub_mail,
    warn,
    wish,
    write,
)
from adaptor.bagfile.scripts.getopt import GivenOption, KnownOption, OptionTable
from adaptor.bagfile.scripts.values import gpus, parse_array, pbs_size, pbs_time, whole
from adaptor.resources import TaskGpus

_PROPERTY = re.compile(r"[A-Za-z][\w.-]*(?:#\w+)?")
_VALUES = "AaceJkMmNoPpqSTtuvWljrdwC"
_ALONE = "fhIVXzG"
_WITHOUT_EFFECT = frozenset("MVzku")
"""The environment is passed on in any case; files are written where they belong at once."""
_WHY = {
    "a": "submit the bag when it may begin",
    "h": "a bag cannot be held; submit it later",
    "I": "interactive jobs are none of tasks",
}
_GROUPS = ("group_list",)  # attributes of `-W` that say who is charged
_QUIET = ("block", "Output_Path", "Error_Path", "x")
"""Attributes of `-W` that change nothing about what an element finds and does."""


def _array(variable: str) -> Follow:
    def noted(asked: ScriptOptions, given: GivenOption) -> None:
        asked.array, asked.array_variable = parse_array(given.value), variable

    return noted


def _join(asked: ScriptOptions, given: GivenOption) -> None:
    if given.value not in ("oe", "eo", "n"):
        raise ValueError("write oe, eo or n")
    asked.join = given.value


def _shell(asked: ScriptOptions, given: GivenOption) -> None:
    """The `#!` line says what runs a script; a shell that is another one would surprise."""
    asked.variables["PBS_O_SHELL"] = given.value


def _variables(asked: ScriptOptions, given: GivenOption) -> None:
    """`NAME=value`; a name alone is passed on with the rest of the environment."""
    for each in given.value.split(","):
        name, equals, value = each.partition("=")
        if not name.strip():
            raise ValueError("write NAME=value,NAME=value")
        if equals:
            asked.variables[name.strip()] = value.strip("'\"")


def _path(value: str) -> str:
    host, colon, path = value.rpartition(":")
    return path if colon and "/" not in host else value


def _rerun(asked: ScriptOptions, given: GivenOption) -> None:
    if given.value != "y":
        warn(asked, given, RUNS_AGAIN)


def _attributes(asked: ScriptOptions, given: GivenOption) -> None:
    """`depend=afterok:7[],group_list=physics`; attributes are behind commas, and so are their values."""
    for each in re.split(r",(?=\w+=)", given.value):
        name, _, value = each.partition("=")
        if asked.ignored(name):
            continue
        if name == "depend":
            depend(asked, given, value)
        elif name in _GROUPS:
            wish(asked, "account", msgspec.structs.replace(given, value=value))
        elif name not in _QUIET:
            raise Unsupported(f"the attribute {name} is not supported", name)


def _resources(asked: ScriptOptions, given: GivenOption) -> None:
    for each in given.value.split(","):
        name, _, value = each.partition("=")
        match name.strip():
            case "walltime":
                write(asked, "timeout", f"{pbs_time(value):.0f}", given)
            case "select":
                _chunk(asked, given, value, "ncpus")
            case "nodes":
                _chunk(asked, given, value, "ppn")
            case "qos":
                asked.wishes.append(SiteWish("qos", given))
            case "procs":
                asked.cpus = whole(value)
            case "place" if value.partition(":")[0] in ("free", "pack", "scatter", "vscatter"):
                continue  # one chunk is on one node in any case
            case "nice" | "file":
                continue
            case "wd" if not value:  # of NCI: the job begins where it was submitted
                asked.cwd = "."
            case other:
                _one_resource(asked, given, other, value)


def _chunk(asked: ScriptOptions, given: GivenOption, text: str, processors: str) -> None:
    """`1:ncpus=4:mem=8gb`, or Torque's `1:ppn=4:fast`; the number may be missing."""
    if "+" in text:
        raise ValueError("a script has one chunk; for several nodes: adaptor submit --nodes N -- COMMAND")
    first, *rest = text.split(":")
    if first.isascii() and first.isdigit():
        if int(first) != 1:
            raise ValueError("a script has one node; for several: adaptor submit --nodes N -- COMMAND")
    else:
        rest.insert(0, first)
    for each in rest:
        name, equals, value = each.partition("=")
        if equals:
            _one_resource(asked, given, "ncpus" if name == processors else name, value)
        elif not _PROPERTY.fullmatch(name):
            raise ValueError(f"'{each}' is no resource and no property of nodes")
        elif not asked.ignored(name):
            of_site(asked, given, name, each)


def _one_resource(asked: ScriptOptions, given: GivenOption, name: str, value: str) -> None:
    match name:
        case "ncpus":
            asked.cpus = whole(value)
        case "mem" | "pmem" | "vmem" | "pvmem":
            asked.options["memory"] = pbs_size(value)
        case "ngpus" | "gpus":
            kind = asked.options.get("gpus")
            found = gpus(value)
            named = kind.type if isinstance(kind, TaskGpus) else ""
            asked.options["gpus"] = TaskGpus(found.count, named) if found is not None else None
        case "ompthreads":
            asked.variables["OMP_NUM_THREADS"] = asked.variables["NCPUS"] = str(whole(value))
        case "mpiprocs" if value != "0":
            asked.mpiprocs = whole(value)
        case _ if not asked.ignored(name):
            of_site(asked, given, name, f"{name}={value}" if value else name)


_FOLLOWED: dict[str, Follow] = {
    "J": _array("PBS_ARRAY_INDEX"),
    "t": _array("PBS_ARRAYID"),
    "N": of_bag("name"),
    "S": _shell,
    "d": field("cwd"),
    "w": field("cwd"),
    "e": field("error", _path),
    "j": _join,
    "l": _resources,
    "m": qsub_mail,
    "o": field("output", _path),
    "W": _attributes,
    "r": _rerun,
    "v": _variables,
}

QSUB = Command(
    mark="#PBS",
    table=OptionTable(
        "qsub",
        [
            *(KnownOption(letter, letter) for letter in _VALUES),
            *(KnownOption(letter, letter, "nothing") for letter in _ALONE),
        ],
        dash="",
    ),
    followed=_FOLLOWED,
    of_sites={"q": "partition", "A": "account", "P": "account"},
    without_effect=_WITHOUT_EFFECT,
    why_not=_WHY,
)
