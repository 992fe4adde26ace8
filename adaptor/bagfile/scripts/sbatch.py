"""The options of sbatch(1), and what each means for a bag."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from adaptor.bagfile.scripts.asked import (
    NOTIFY,
    Follow,
    ScriptOptions,
    SiteWish,
    field,
    follow,
    of_bag,
    only,
    write,
)
from adaptor.bagfile.scripts.getopt import GivenOption, KnownOption, OptionTable
from adaptor.bagfile.scripts.values import gpus, gres, parse_array, slurm_size, slurm_time, whole

_LETTERS = {
    "account": "A", "array": "a", "batch": "", "begin": "b", "chdir": "D", "clusters": "M", "comment": "",
    "constraint": "C", "core-spec": "S", "cpus-per-task": "c", "dependency": "d", "distribution": "m",
    "error": "e", "exclude": "x", "extra-node-info": "B", "gpus": "G", "immediate": "I", "input": "i",
    "job-name": "J", "licenses": "L", "nodefile": "F", "nodelist": "w", "nodes": "N", "ntasks": "n",
    "output": "o", "partition": "p", "qos": "q", "time": "t",
}  # fmt: skip
_MORE = (
    "acctg-freq", "cluster", "bb", "bbf", "cluster-constraint", "cores-per-socket", "cpu-bind", "cpu-freq",
    "cpus-per-gpu", "deadline", "delay-boot", "export", "export-file", "gid", "gpu-bind", "gpu-freq",
    "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "gres-flags", "hint", "mail-type",
    "mail-user", "mcs-label", "mem", "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "network",
    "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket", "open-mode", "power",
    "prefer", "priority", "profile", "propagate", "reservation", "segment", "signal", "sockets-per-node",
    "switches", "tasks-per-node", "thread-spec", "threads-per-core", "time-min", "tmp", "tres-bind",
    "tres-per-task", "uid", "wait-all-nodes", "wckey", "wrap",
)  # fmt: skip
_ALONE = {
    "contiguous": "", "hold": "H", "ignore-pbs": "", "no-requeue": "", "overcommit": "O",
    "oversubscribe": "s", "parsable": "", "quiet": "Q", "reboot": "", "requeue": "", "spread-job": "",
    "test-only": "", "use-min-nodes": "", "verbose": "v", "wait": "W",
}  # fmt: skip
_PERHAPS = {"exclusive": "", "get-user-env": "", "kill-on-invalid-dep": "", "nice": "", "no-kill": "k"}

TABLE = OptionTable(
    "sbatch",
    [
        *(KnownOption(name, letter) for name, letter in _LETTERS.items()),
        *(KnownOption(name) for name in _MORE),
        *(KnownOption(name, letter, "nothing") for name, letter in _ALONE.items()),
        *(KnownOption(name, letter, "perhaps") for name, letter in _PERHAPS.items()),
    ],
)

WITHOUT_EFFECT = frozenset({
    "acctg-freq", "comment", "distribution", "get-user-env", "ignore-pbs", "kill-on-invalid-dep",
    "mail-user", "nice", "no-kill", "overcommit", "oversubscribe", "parsable", "profile", "quiet", "requeue",
    "verbose", "wckey",
})  # fmt: skip
"""Options that change nothing about what an element finds and does."""
OF_SITES = ("partition", "account", "qos", "constraint", "licenses", "nodelist", "exclude")
_OF_NO_SITE = ("cluster", "clusters", "reservation")
_WHY = {
    "begin": "submit the bag when it may begin",
    "dependency": "a bag does not wait for jobs; submit it when they are done",
    "exclusive": "tasks share nodes; ask for all processors of a node by --cpus-per-task",
    "export-file": "export the variables in the shell that submits it",
    "hold": "a bag cannot be held; submit it later",
    "no-requeue": "a task whose node was lost runs again",
    "input": "standard input is /dev/null",
    "test-only": "nothing is submitted with it",
    "time-min": "the walltime of requests is crafted",
    "tmp": "the space on the nodes' disks is not known",
    "wait": "use `adaptor run`, or `adaptor wait`",
    "wrap": "use `adaptor submit -- COMMAND`",
}


def read_sbatch(given: Sequence[GivenOption]) -> ScriptOptions:
    """What these options ask for; later ones win. Raises OptionError: one cannot be followed."""
    asked = ScriptOptions()
    for each in given:
        if each.name in WITHOUT_EFFECT:
            continue
        if each.name in OF_SITES or each.name in _OF_NO_SITE:
            wish = SiteWish(each.name if each.name in OF_SITES else "", each)
            asked.wishes = [other for other in asked.wishes if other.given.name != each.name] + [wish]
            continue
        follow(asked, each, _FOLLOWED, _WHY)
    return asked


def _processes_per_node(asked: ScriptOptions, given: GivenOption) -> None:
    asked.processes = whole(given.value)
    asked.variables["SLURM_NTASKS_PER_NODE"] = given.value


def _memory(asked: ScriptOptions, given: GivenOption) -> None:
    size = slurm_size(given.value)
    if not size:
        raise ValueError("all memory of a node; write how much a task needs")
    asked.options["memory"], asked.memory_per_cpu = size, None


def _memory_per_cpu(asked: ScriptOptions, given: GivenOption) -> None:
    asked.memory_per_cpu = slurm_size(given.value) or None
    asked.options.pop("memory", None)


def _memory_per_gpu(asked: ScriptOptions, given: GivenOption) -> None:
    asked.memory_per_gpu = slurm_size(given.value) or None
    asked.options.pop("memory", None)


def _time(asked: ScriptOptions, given: GivenOption) -> None:
    seconds = slurm_time(given.value)
    if seconds is None:
        asked.written.pop("timeout", None)
    else:
        write(asked, "timeout", f"{seconds:.0f}", given)


def _mail(asked: ScriptOptions, given: GivenOption) -> None:
    if given.value.upper() != "NONE":
        asked.wishes.append(SiteWish(NOTIFY, given))


def _open_mode(asked: ScriptOptions, given: GivenOption) -> None:
    if given.value not in ("append", "truncate"):
        raise ValueError("write append or truncate")
    asked.append = given.value == "append"


def _hint(_asked: ScriptOptions, given: GivenOption) -> None:
    if given.value == "nomultithread":
        raise ValueError("processors are what the scheduler counts")


def _signal(asked: ScriptOptions, given: GivenOption) -> None:
    """`B:USR1@120`; all processes of the element get it, also where only the shell is meant."""
    name, at, seconds = given.value.split(":")[-1].partition("@")
    if name.isdecimal():
        name = signal.Signals(int(name)).name
    write(asked, "signal", f"{name}@{seconds if at else 60}", given)


def _stated(value: str) -> str:
    if not value:
        raise ValueError("the value is missing")
    return value


def _named(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("a name is printable text")
    return value


_FOLLOWED: dict[str, Follow] = {
    "array": field("array", parse_array),
    "begin": only(("now",), _WHY["begin"]),
    "chdir": field("cwd", _stated),
    "cpus-per-gpu": field("cpus_per_gpu", whole),
    "cpus-per-task": field("cpus", whole),
    "error": field("error", _stated),
    "export": field("export", _stated),
    "gpus": of_bag("gpus", gpus),
    "gpus-per-node": of_bag("gpus", gpus),
    "gpus-per-task": of_bag("gpus", gpus),
    "gres": of_bag("gpus", gres),
    "hint": _hint,
    "job-name": of_bag("name", _named),
    "mail-type": _mail,
    "mem": _memory,
    "mem-per-cpu": _memory_per_cpu,
    "mem-per-gpu": _memory_per_gpu,
    "nodes": only(("1", "1-1"), "a script has one node; for several see docs/sizes.md#several-nodes"),
    "ntasks": field("processes", whole),
    "ntasks-per-core": only(("1",), "not supported"),
    "ntasks-per-node": _processes_per_node,
    "ntasks-per-socket": only(("1",), "not supported"),
    "tasks-per-node": _processes_per_node,
    "open-mode": _open_mode,
    "output": field("output", _stated),
    "signal": _signal,
    "time": _time,
}
