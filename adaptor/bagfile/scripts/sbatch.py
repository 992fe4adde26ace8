"""The options of sbatch(1), and what each means for a bag."""

from __future__ import annotations

import re
import signal
from collections.abc import Collection

from adaptor.bagfile.scripts.asked import (
    NOTIFY,
    RUNS_AGAIN,
    Command,
    Follow,
    ScriptOptions,
    SiteWish,
    Unsupported,
    depend,
    field,
    warn,
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
    "acctg-freq", "cluster", "bb", "bbf", "cluster-constraint", "container", "container-id",
    "cores-per-socket", "cpu-bind", "cpu-freq", "cpus-per-gpu", "deadline", "delay-boot", "export",
    "export-file", "gid", "gpu-bind", "gpu-freq", "gpus-per-node", "gpus-per-socket", "gpus-per-task",
    "gres", "gres-flags", "hint", "mail-type", "mail-user", "mcs-label", "mem", "mem-bind", "mem-per-cpu",
    "mem-per-gpu", "mincpus", "network", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
    "ntasks-per-socket", "open-mode", "power", "prefer", "priority", "profile", "propagate", "reservation",
    "segment", "signal", "sockets-per-node", "switches", "tasks-per-node", "thread-spec",
    "threads-per-core", "time-min", "tmp", "tres-bind", "tres-per-task", "uid", "wait-all-nodes", "wckey",
    "workdir", "wrap",
)  # fmt: skip
_ALONE = {
    "contiguous": "", "hold": "H", "ignore-pbs": "", "no-requeue": "", "overcommit": "O",
    "oversubscribe": "s", "parsable": "", "quiet": "Q", "reboot": "", "requeue": "", "spread-job": "",
    "test-only": "", "use-min-nodes": "", "verbose": "v", "wait": "W",
}  # fmt: skip
_PERHAPS = {"exclusive": "", "get-user-env": "", "kill-on-invalid-dep": "", "nice": "", "no-kill": "k"}

WITHOUT_EFFECT = frozenset({
    "acctg-freq", "comment", "contiguous", "cpu-bind", "delay-boot", "distribution", "get-user-env",
    "gpu-bind", "gres-flags", "ignore-pbs", "kill-on-invalid-dep", "mail-user", "mcs-label", "mem-bind",
    "network", "nice", "no-kill", "overcommit", "oversubscribe", "parsable", "power", "priority", "profile",
    "propagate", "quiet", "requeue", "spread-job", "switches", "use-min-nodes", "verbose", "wait-all-nodes",
    "wckey",
})  # fmt: skip
"""Options that change nothing about what an element on one node finds and does."""
OF_SITES = ("partition", "account", "qos", "constraint", "licenses", "nodelist", "exclude")
_OF_NO_SITE = ("cluster", "clusters", "prefer", "reservation")
_WHY = {
    "exclusive": "tasks share nodes; ask for all processors of a node by --cpus-per-task",
    "container": "name the container in the script's own commands",
    "container-id": "name the container in the script's own commands",
    "export-file": "export the variables in the shell that submits it",
    "hold": "a bag cannot be held; submit it later",
    "input": "standard input is /dev/null",
    "test-only": "nothing is submitted with it",
    "tmp": "the space on the nodes' disks is not known",
    "wrap": "use `adaptor submit -- COMMAND`",
}
_NOT_AS_ASKED = {
    "cpu-freq": "the processors run at their usual frequency",
    "deadline": "write `#ADAPTOR deadline=TIME`",
    "immediate": "the bag waits for processors",
    "no-requeue": RUNS_AGAIN,
    "time-min": "the walltime of requests is crafted",
    "wait": "the command does not wait for the bag: use `adaptor run`, or `adaptor watch`",
}


COUNTED = "processors are what the scheduler counts"


def _only(allowed: Collection[str], why: str) -> Follow:
    """Takes these values, which change nothing; `why` no others."""

    def checked(_asked: ScriptOptions, given: GivenOption) -> None:
        if given.value not in allowed:
            raise Unsupported(why)

    return checked


def _nodes(_asked: ScriptOptions, given: GivenOption) -> None:
    """`1`, or a range from 1 on."""
    least = given.value.partition("-")[0]
    if not (least.isascii() and least.isdigit()):
        raise ValueError(f"'{given.value}' is no number of nodes")
    if int(least) != 1:
        raise ValueError("a script has one node; for several: adaptor submit --nodes N -- COMMAND")


def _dependency(asked: ScriptOptions, given: GivenOption) -> None:
    """`afterok:7:8,afterany:9`: bags, by the numbers that `submit --parsable` prints."""
    if "?" in given.value:
        raise Unsupported("a bag waits for all of its bags, not for any of them")
    depend(asked, given, given.value)


def _processes_per_node(asked: ScriptOptions, given: GivenOption) -> None:
    asked.processes = whole(given.value)
    asked.variables["SLURM_NTASKS_PER_NODE"] = given.value


def _gpus(variable: str, *, each: bool = False) -> Follow:
    """Follow an option on GPUs. `variable`: shows the elements what was asked for; `each`: for each
    process."""

    def noted(asked: ScriptOptions, given: GivenOption) -> None:
        asked.options["gpus"], asked.gpus_each = gpus(given.value), each
        asked.variables[variable] = given.value

    return noted


def _gres(asked: ScriptOptions, given: GivenOption) -> None:
    name = given.value.partition(":")[0]
    if name in ("shard", "mps"):
        raise ValueError(f"'{given.value}' is a part of a GPU; write `#ADAPTOR gpus=0.5`")
    if name != "gpu" and "," not in given.value:
        raise Unsupported(f"'{given.value}': of generic resources only gpu is divided among tasks")
    asked.options["gpus"] = gres(given.value)


def _memory(asked: ScriptOptions, given: GivenOption) -> None:
    size = slurm_size(given.value)
    if not size:
        raise Unsupported("all memory of a node; write how much a task needs")
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


_FROM_NOW = re.compile(r"now\+(?P<number>\d{1,9})\s*(?P<unit>[a-z]*)", re.ASCII)


def _begin(asked: ScriptOptions, given: GivenOption) -> None:
    """`now`, `now+60` (seconds), `now+1hour`, `22:00` or a date."""
    text = given.value.strip()
    if text.lower() == "now":
        return
    if found := _FROM_NOW.fullmatch(text.lower()):
        text = f"{found['number']}{found['unit'] or 's'}"
    write(asked, "begin", text, given)


def _mail(asked: ScriptOptions, given: GivenOption) -> None:
    if given.value.upper() != "NONE":
        asked.wishes.append(SiteWish(NOTIFY, given))


def _open_mode(asked: ScriptOptions, given: GivenOption) -> None:
    if given.value not in ("append", "truncate"):
        raise ValueError("write append or truncate")
    asked.append = given.value == "append"
    asked.variables["SLURM_OPEN_MODE"] = given.value[0]


def _hint(asked: ScriptOptions, given: GivenOption) -> None:
    asked.variables["SLURM_HINT"] = given.value
    if given.value == "nomultithread":
        asked.variables["SLURM_THREADS_PER_CORE"] = "1"
        warn(asked, given, COUNTED)


def _threads(asked: ScriptOptions, given: GivenOption) -> None:
    asked.variables["SLURM_THREADS_PER_CORE"] = str(whole(given.value))
    warn(asked, given, COUNTED)


def _workdir(asked: ScriptOptions, given: GivenOption) -> None:
    asked.cwd = _stated(given.value)
    warn(asked, given, "Slurm calls it --chdir since 17.11")


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


def _job_name(asked: ScriptOptions, given: GivenOption) -> None:
    """An empty one leaves the name to the file, as with sbatch."""
    if not given.value.isprintable():
        raise ValueError("a name is printable text")
    if given.value.strip():
        write(asked, "name", given.value, given)


_FOLLOWED: dict[str, Follow] = {
    "array": field("array", parse_array),
    "begin": _begin,
    "chdir": field("cwd", _stated),
    "cpus-per-gpu": field("cpus_per_gpu", whole),
    "cpus-per-task": field("cpus", whole),
    "dependency": _dependency,
    "error": field("error", _stated),
    "export": field("export", _stated),
    "gpus": _gpus("SLURM_GPUS"),
    "gpus-per-node": _gpus("SLURM_GPUS_PER_NODE"),
    "gpus-per-task": _gpus("SLURM_GPUS_PER_TASK", each=True),
    "gres": _gres,
    "hint": _hint,
    "job-name": _job_name,
    "mail-type": _mail,
    "mem": _memory,
    "mem-per-cpu": _memory_per_cpu,
    "mem-per-gpu": _memory_per_gpu,
    "nodes": _nodes,
    "ntasks": field("processes", whole),
    "ntasks-per-core": _only(("1",), "not supported"),
    "ntasks-per-node": _processes_per_node,
    "ntasks-per-socket": _only(("1",), "not supported"),
    "tasks-per-node": _processes_per_node,
    "open-mode": _open_mode,
    "output": field("output", _stated),
    "signal": _signal,
    "threads-per-core": _threads,
    "time": _time,
    "workdir": _workdir,
}

SBATCH = Command(
    mark="#SBATCH",
    table=OptionTable(
        "sbatch",
        [
            *(KnownOption(name, letter) for name, letter in _LETTERS.items()),
            *(KnownOption(name) for name in _MORE),
            *(KnownOption(name, letter, "nothing") for name, letter in _ALONE.items()),
            *(KnownOption(name, letter, "perhaps") for name, letter in _PERHAPS.items()),
        ],
    ),
    followed=_FOLLOWED,
    of_sites={**{name: name for name in OF_SITES}, **dict.fromkeys(_OF_NO_SITE, "")},
    without_effect=WITHOUT_EFFECT,
    why_not=_WHY,
    not_as_asked=_NOT_AS_ASKED,
)
