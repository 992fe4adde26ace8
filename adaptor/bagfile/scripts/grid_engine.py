"""The options of Grid Engine's qsub(1): words behind one dash, as `-pe smp 4`, `-t 1-10:2`, `-cwd`."""

from __future__ import annotations

from adaptor.bagfile.scripts.asked import (
    RUNS_AGAIN,
    Command,
    Follow,
    ScriptOptions,
    field,
    of_bag,
    of_site,
    qsub_mail,
    warn,
    write,
)
from adaptor.bagfile.scripts.getopt import GivenOption, KnownOption, OptionTable
from adaptor.bagfile.scripts.values import parse_array, pbs_size, pbs_time, whole

_ALONE = ("V", "clear", "cwd", "h", "hard", "notify", "soft", "terse")
_VALUES = (
    *("A", "M", "N", "P", "R", "S", "a", "ac", "b", "binding", "e", "hold_jid", "j", "js", "l", "m", "now"),
    *("o", "p", "q", "r", "shell", "sync", "t", "tc", "v", "w", "wd"),
)
_WITHOUT_EFFECT = frozenset(
    ("A", "M", "R", "S", "V", "binding", "clear", "hard", "js", "notify", "now", "p", "shell", "terse", "w")
)
"""The environment is passed on in any case; the rest concerns the order of jobs, or qsub itself."""
_WHY = {
    "a": "submit the bag when it may begin",
    "ac": "a bag has no context of Grid Engine",
    "h": "a bag cannot be held; submit it later",
    "hold_jid": "a bag does not wait for jobs",
    "soft": "requests of a bag are all hard",
}


def _array(asked: ScriptOptions, given: GivenOption) -> None:
    asked.array = parse_array(given.value)
    if asked.array.indices[0] < 1:
        raise ValueError("tasks are counted from 1")


def _slots(asked: ScriptOptions, given: GivenOption) -> None:
    """All on one node: what the environment does elsewhere is not known here."""
    asked.cpus = whole(given.value.split()[-1].partition("-")[0])


def _resources(asked: ScriptOptions, given: GivenOption) -> None:
    for each in given.value.split(","):
        name, _, value = each.partition("=")
        match name.strip():
            case "h_rt" | "s_rt":
                write(asked, "timeout", f"{pbs_time(value):.0f}", given)
            case "h_vmem" | "mem_free" | "virtual_free" | "s_vmem":
                asked.memory_per_cpu = pbs_size(value)
            case other if not asked.ignored(other):
                of_site(asked, given, other, each)


def _path(value: str) -> str:
    return value.rpartition(":")[2]


def _variables(asked: ScriptOptions, given: GivenOption) -> None:
    for each in given.value.split(","):
        name, equals, value = each.partition("=")
        if equals:
            asked.variables[name.strip()] = value


def _no_program(_asked: ScriptOptions, given: GivenOption) -> None:
    if given.value.lower() not in ("n", "no"):
        raise ValueError("a script is no program: write adaptor submit -- PROGRAM")


def _rerun(asked: ScriptOptions, given: GivenOption) -> None:
    if given.value.lower() not in ("y", "yes"):
        warn(asked, given, RUNS_AGAIN)


def _join(asked: ScriptOptions, given: GivenOption) -> None:
    asked.join = "oe" if given.value.lower() in ("y", "yes") else ""


_FOLLOWED: dict[str, Follow] = {
    "N": of_bag("name"),
    "b": _no_program,
    "cwd": lambda asked, _: setattr(asked, "cwd", "."),
    "e": field("error", _path),
    "j": _join,
    "l": _resources,
    "m": qsub_mail,
    "o": field("output", _path),
    "pe": _slots,
    "r": _rerun,
    "t": _array,
    "tc": field("at_most", whole),
    "v": _variables,
    "wd": field("cwd", _path),
}

GRID_ENGINE = Command(
    mark="#$",
    table=OptionTable(
        "qsub",
        [
            *(KnownOption(name, takes="nothing") for name in _ALONE),
            KnownOption("pe", takes="two values"),
            *map(KnownOption, _VALUES),
        ],
        dash="-",
    ),
    followed=_FOLLOWED,
    of_sites={"q": "partition", "P": "account"},
    without_effect=_WITHOUT_EFFECT,
    why_not=_WHY,
    not_as_asked={"sync": "the command does not wait for the bag: write adaptor run"},
    append=True,  # sge_shepherd opens the files of a job so
)
