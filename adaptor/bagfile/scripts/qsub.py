"""The options of qsub: OpenPBS's qsub(1B), and what Torque's has beside (`-t`, `-d`, `nodes=1:ppn=4`)."""

from __future__ import annotations

from collections.abc import Sequence

from adaptor.bagfile.scripts.asked import (
    Follow,
    ScriptOptions,
    SiteWish,
    field,
    follow,
    of_bag,
    only,
    qsub_mail,
    wish,
    write,
)
from adaptor.bagfile.scripts.getopt import GivenOption, KnownOption, OptionTable
from adaptor.bagfile.scripts.values import gpus, parse_array, pbs_size, pbs_time, whole
from adaptor.resources import TaskGpus

_VALUES = "AaceJkMmNoPpqSTtuvWljrdwC"
_ALONE = "fhIVXzG"
TABLE = OptionTable(
    "qsub",
    [
        *(KnownOption(letter, letter) for letter in _VALUES),
        *(KnownOption(letter, letter, "nothing") for letter in _ALONE),
    ],
    long=False,
)
_WITHOUT_EFFECT = frozenset("MVzku")
"""The environment is passed on in any case; files are written where they belong at once."""
_OF_SITES = {"q": "partition", "A": "account", "P": "account"}
_WHY = {
    "a": "submit the bag when it may begin",
    "h": "a bag cannot be held; submit it later",
    "I": "interactive jobs are none of tasks",
    "W": "a bag does not wait for jobs, and stages no files",
}


def read_qsub(given: Sequence[GivenOption]) -> ScriptOptions:
    """What these options ask for; later ones win. Raises OptionError: one cannot be followed."""
    asked = ScriptOptions()
    for each in given:
        if each.name in _WITHOUT_EFFECT:
            continue
        if each.name in _OF_SITES:
            wish(asked, _OF_SITES[each.name], each)
            continue
        follow(asked, each, _FOLLOWED, _WHY)
    return asked


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


def _resources(asked: ScriptOptions, given: GivenOption) -> None:
    for each in given.value.split(","):
        name, _, value = each.partition("=")
        match name.strip():
            case "walltime":
                write(asked, "timeout", f"{pbs_time(value):.0f}", given)
            case "select":
                _chunk(asked, value, "ncpus")
            case "nodes":
                _chunk(asked, value, "ppn")
            case "qos":
                asked.wishes.append(SiteWish("qos", given))
            case "procs":
                asked.cpus = whole(value)
            case "place" | "nice" | "file" if name != "place" or value in ("free", "pack"):
                continue
            case other:
                _one_resource(asked, other, value)


def _chunk(asked: ScriptOptions, text: str, processors: str) -> None:
    """`1:ncpus=4:mem=8gb`, or Torque's `1:ppn=4`; the number may be missing."""
    if "+" in text:
        raise ValueError("a script has one chunk; for several nodes see docs/sizes.md#several-nodes")
    first, *rest = text.split(":")
    if "=" in first:
        rest.insert(0, first)
    elif first != "1":
        raise ValueError("a script has one node; for several see docs/sizes.md#several-nodes")
    for each in rest:
        name, equals, value = each.partition("=")
        if not equals:
            raise ValueError(f"'{each}': properties of nodes are those of a site's `constraint`")
        _one_resource(asked, "ncpus" if name == processors else name, value)


def _one_resource(asked: ScriptOptions, name: str, value: str) -> None:
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
        case _:
            raise ValueError(f"the resource {name} is not known to a bag")


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
    "r": only(("y",), "a task whose node was lost runs again"),
    "v": _variables,
}
