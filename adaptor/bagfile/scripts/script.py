"""A batch script → the tasks of a bag: one for each element of its array."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from adaptor.api import TaskInput
from adaptor.bagfile.comments import almost_ours, tool_of
from adaptor.bagfile.options import KEYS, add_options, field_of, parse_option
from adaptor.bagfile.scripts import patterns
from adaptor.bagfile.scripts.asked import Command, Remark, ScriptOptions, refuse, sites_for, usual_dialect
from adaptor.bagfile.scripts.body import read_body
from adaptor.bagfile.scripts.getopt import GivenOption, OptionError, comments, directives, words_of
from adaptor.bagfile.scripts.grid_engine import GRID_ENGINE
from adaptor.bagfile.scripts.qsub import QSUB
from adaptor.bagfile.scripts.sbatch import SBATCH
from adaptor.bagfile.scripts.values import parse_array
from adaptor.batch_script import INDEX, BatchScript, Dialect
from adaptor.errors import BagFileError, ObstaclesError, UsageError

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig

LARGEST = 1024**2  # bytes of a script; sbatch takes 4 MiB
_USUAL = {"retries": 0, "replicas": 0}
"""Defaults as under sbatch: an element runs once, and never twice at the same time."""
_ARRAYS = ("array", "J", "t")  # names of the options with an array
_COMMANDS: Mapping[Dialect, Command] = {"slurm": SBATCH, "pbs": QSUB, "gridengine": GRID_ENGINE}
"""Commands in the order in which their lines are searched."""
_MEGABYTE = 1024**2
SHIM_OFF = "shim=off"  # an `#ADAPTOR` line that is for `adaptor.shims`


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the command line that go with a script, and where they were given."""

    folder: str
    """Folder in which it was submitted, absolute."""
    user: str
    host: str
    home: str
    environment: Mapping[str, str]
    """The part of the shell's that is passed on."""
    arguments: Sequence[str] = ()
    given: Sequence[GivenOption] | None = None
    """Options of sbatch in place of the lines of the script; None: its lines count."""
    array: str | None = None
    ignore: Collection[str] = ()
    """Names of options; a name stands for all that begin with it and a dash, too."""
    options: Mapping[str, Any] = {}
    """Options of the bag, by field; they go before those of the script."""
    now: float = 0.0
    """Epoch seconds, for options that take a time from now."""
    sites: Mapping[str, SiteConfig] = {}
    """Sites of the configuration."""
    notified: bool = False
    """True if the configuration says who gets messages about the end of bags."""

    def ignores(self, name: str) -> bool:
        """`l` stands for no single resource, so it is not ignored as a whole."""
        return name != "l" and any(name == other or name.startswith(f"{other}-") for other in self.ignore)


class ScriptBag(msgspec.Struct, frozen=True):
    """A script as a bag."""

    tasks: list[TaskInput]
    options: dict[str, Any]
    """Options by field of `BagSpec`."""
    lines: dict[str, int]
    """Numbers of the lines that set options, by field."""
    environment: dict[str, str]
    """Variables of all tasks."""
    cwd: str
    """Absolute, or below the folder of the submission."""
    sites: tuple[str, ...]
    """Configured sites that have what the script asks for; empty: all."""
    remarks: list[Remark]


def script_bag(data: bytes, source: str, name: str, submission: Submission) -> ScriptBag:
    """The bag of a script.

    Args:
        source: for messages.
        name: of its file.

    Raises:
        BagFileError: it cannot be submitted as it is; the message names all obstacles and the way out.
        UsageError: `--array` is no array.
    """
    if len(data) > LARGEST:
        raise BagFileError(f"{source}: a script of more than 1 MiB; keep data in files of their own")
    if b"\0" in data:
        raise BagFileError(f"{source}: contains a NUL byte; for a program write: adaptor submit -- {source}")
    if b"\r\n" in data:
        raise BagFileError(
            f"{source}: has line ends of DOS, which no interpreter takes; convert it: dos2unix {source}"
        )
    text = data.decode(errors="replace")
    chosen: Sequence[str] = submission.options.get("sites", ())
    lines = (dialect for dialect, command in _COMMANDS.items() if directives(text, command.mark))
    usual = usual_dialect(submission.sites, chosen)
    dialect = "slurm" if submission.given is not None else next(lines, usual)
    asked = _asked(text, dialect, submission)
    if submission.array is not None:
        try:
            asked.array = parse_array(submission.array)
        except ValueError as error:
            raise UsageError(f"--array: {error}") from None
    implied, own = _implied(asked, submission.now), _own_options(asked, text, submission.now)
    options = {"name": name, **_USUAL, **implied, **own, **submission.options}
    told = submission.notified or bool(options.get("notify"))
    if options.get("shell"):
        raise BagFileError(f"{source}: the '#!' line of a batch script names its shell: leave out --shell")
    sites = sites_for(asked, submission.sites, chosen=options.get("sites", ()), told=told)
    read_body(asked, text, dialect)
    if asked.obstacles:
        raise _refused(asked.obstacles, source)
    return _Maker(data, dialect, asked, options, submission).bag(sites)


_NAMED = 5  # lines with one obstacle that are named besides the first


def _refused(obstacles: Sequence[OptionError], source: str) -> ObstaclesError:
    """All that stops a script, and what lets it through."""
    obstacles = sorted(obstacles, key=lambda each: each.line)
    names = ",".join(dict.fromkeys(each.ignore for each in obstacles if each.ignore and not each.site))
    fixed = [each for each in obstacles if not each.ignore]
    first = str(obstacles[0])
    if len(obstacles) == 1:
        way = f"; --ignore {names} submits it without" if names else ""
        return ObstaclesError(f"{source}:{obstacles[0].line}: {obstacles[0]}{way}", first=first)
    alike: dict[str, list[int]] = {}
    for each in obstacles:
        alike.setdefault(str(each), []).append(each.line)
    lines = [f"{_lines(at)}: {what}" for what, at in alike.items()]
    if names:
        rest = ", once the other lines are changed" if fixed else ""
        lines.append(f"--ignore {names} submits it without these{rest}")
    return ObstaclesError(f"{source}: {len(obstacles)} lines cannot be followed", lines, first=first)


def _lines(numbers: Sequence[int]) -> str:
    first, *others = numbers
    if len(others) > _NAMED:
        return f"line {first} and {len(others)} others"
    return f"lines {', '.join(map(str, numbers))}" if others else f"line {first}"


def _asked(text: str, dialect: Dialect, submission: Submission) -> ScriptOptions:
    """Options from the lines for a scheduler; unreadable ones are among the obstacles."""
    command, given, problems = _COMMANDS[dialect], submission.given, list[OptionError]()
    if given is None:
        given, problems = options_of(text, command, submission.ignores)
    if submission.array is not None:  # as with sbatch, that of the command line wins, whatever the file says
        given = [each for each in given if each.name not in _ARRAYS]
    asked = command.read(given, submission.ignores)
    asked.obstacles += problems
    return asked


def options_of(
    text: str, command: Command, ignored: Callable[[str], bool]
) -> tuple[list[GivenOption], list[OptionError]]:
    """The options in a script's lines for a command, and what cannot be read."""
    words, problems = [], []
    for line, rest in directives(text, command.mark):
        try:
            words += words_of(rest, line)
        except ValueError as error:
            problems.append(OptionError(line, str(error)))
    given, unread = command.table.read(words, ignored)
    return given, [*problems, *unread]


def _own_options(asked: ScriptOptions, text: str, now: float) -> dict[str, Any]:
    options: dict[str, Any] = {}
    read = any(directives(text, command.mark) for command in _COMMANDS.values())
    for line, rest in comments(text):
        if almost_ours(rest):
            why = f"'{rest.split()[0]}' is a comment, and looks like options: write '#ADAPTOR key=value'"
            asked.obstacles.append(OptionError(line, why))
        elif not read and (tool := tool_of(rest)):  # with lines that are read it is for several schedulers
            why = f"'{rest.split()[0]}' is of {tool}, which is not read: write '#SBATCH' or '#ADAPTOR' lines"
            asked.obstacles.append(OptionError(line, why))
    for line, rest in directives(text, "#ADAPTOR"):
        if rest.strip() == SHIM_OFF:
            continue
        try:
            before = set(options)
            add_options(options, rest, now)
            asked.lines |= dict.fromkeys(options.keys() - before, line)
        except ValueError as error:
            asked.obstacles.append(OptionError(line, str(error)))
    return options


def _implied(asked: ScriptOptions, now: float) -> dict[str, Any]:
    """The options that the script's own imply."""
    options = dict(asked.options)
    written = dict(asked.written)
    if "timeout" in written:
        # Until some have ended: what jobs of their own would ask for.
        written["time"], asked.writers["time"] = written["timeout"], asked.writers["timeout"]
    at_most = asked.at_most or (asked.array.at_most if asked.array is not None else None)
    if asked.array is not None and at_most is not None:
        written["max-running"] = str(at_most)
    for key, text in written.items():
        if key in KEYS:
            try:
                field, value = parse_option(key, text, now)
            except ValueError as error:
                if key != "time":  # said of the timeout
                    asked.obstacles.append(refuse(asked.writers[key], str(error)))
                continue
            options[field] = value
    return {**options, **_sizes(asked, options)}


def _sizes(asked: ScriptOptions, options: Mapping[str, Any]) -> dict[str, Any]:
    """The processors and the memory of an element, as far as they are asked for."""
    sizes: dict[str, Any] = {}
    processors = (asked.processes or 1) * (asked.cpus or 1)
    if asked.processes is not None or asked.cpus is not None:
        sizes["cpus"] = processors
    elif asked.mpiprocs is not None:
        sizes["cpus"] = asked.mpiprocs
    if asked.gpus_each and options.get("gpus"):
        each = options["gpus"]
        sizes["gpus"] = msgspec.structs.replace(each, count=each.count * (asked.processes or 1))
    gpus = options["gpus"].count if options.get("gpus") else 1
    if asked.cpus_per_gpu is not None:
        sizes["cpus"] = max(processors, int(asked.cpus_per_gpu * gpus))
    if asked.memory_per_cpu is not None:
        sizes["memory"] = asked.memory_per_cpu * processors
    if asked.memory_per_gpu is not None:
        sizes["memory"] = int(asked.memory_per_gpu * gpus)
    return sizes


class _Maker(msgspec.Struct, frozen=True):
    data: bytes
    dialect: Dialect
    asked: ScriptOptions
    options: dict[str, Any]
    submission: Submission

    @property
    def name(self) -> str:
        name: str = self.options["name"]
        return name

    def bag(self, sites: tuple[str, ...]) -> ScriptBag:
        environment, exported = self._exported()
        variables = {**exported, **self._variables(), **self.asked.variables}
        output, error = self._files()
        options = {key: value for key, value in self.options.items() if key not in ("output", "cwd")}
        options["script"] = BatchScript(
            body=self.data,
            dialect=self.dialect,
            array=self.asked.array is not None,
            output=output,
            error=error,
            append=self.asked.append,
            variables=variables,
            processes=self.asked.mpiprocs or 1,
        )
        options["output"] = patterns.constant_folder(output)
        lines = {field_of(key): line for key, line in self.asked.lines.items() if key in KEYS}
        return ScriptBag(self._tasks(), options, lines, environment, self._cwd(), sites, self.asked.remarks)

    def _cwd(self) -> str:
        """PBS and Grid Engine start a job in the home folder."""
        named: str | None = self.options.get("cwd")
        usual = self.submission.folder if self.dialect == "slurm" else self.submission.home
        return named or self.asked.cwd or usual

    def _files(self) -> tuple[str, str]:
        """The patterns for standard output and error; error is empty where they are the same."""
        asked, given = self.asked, self.submission
        chosen: str = self.options.get("output") or asked.output
        array = asked.array is not None
        if self.dialect == "gridengine":
            folder = patterns.below(given.folder, self._cwd())
            whose = (self.name, given.user, folder)
            output = patterns.of_grid_engine(chosen, *whose, array=array, suffix="o")
            error = patterns.of_grid_engine(asked.error, *whose, array=array, suffix="e")
            return output, "" if asked.join else error
        if self.dialect == "pbs":
            where = (self.name, given.user, given.folder)
            output = patterns.of_pbs(chosen, *where, array=array, suffix="o")
            error = patterns.of_pbs(asked.error, *where, array=array, suffix="e")
            if asked.join == "eo" and not self.options.get("output"):
                return error, ""
            joined = asked.join in ("oe", "eo") or (self.options.get("output") and not asked.error)
            return output, "" if joined else error
        folder = patterns.below(given.folder, self._cwd())
        where = (self.name, given.user, folder)
        output = patterns.of_slurm(chosen or ("slurm-%A_%a.out" if array else "slurm-%j.out"), *where)
        return output, patterns.of_slurm(asked.error, *where) if asked.error else ""

    def _exported(self) -> tuple[dict[str, str], dict[str, str]]:
        """The environment that is passed on, and single variables in addition, by `--export`."""
        environment = dict(self.submission.environment)
        words = [word.strip() for word in self.asked.export.split(",") if word.strip()]
        everything = any(word.upper() in ("ALL", "NIL") for word in words) or not words
        chosen = {}
        for word in words:
            name, equals, value = word.partition("=")
            if equals:
                chosen[name] = value
            elif name in environment:
                chosen[name] = environment[name]
        return (environment, chosen) if everything else ({}, chosen)

    def _variables(self) -> dict[str, str]:
        """The known variables of all elements."""
        given = self.submission
        if self.dialect == "gridengine":
            return self._of_grid_engine()
        if self.dialect == "pbs":
            told = {
                "PBS_JOBNAME": self.name,
                "PBS_O_HOME": given.home,
                "PBS_O_HOST": given.host,
                "PBS_O_LOGNAME": given.user,
                "PBS_O_WORKDIR": given.folder,
            }
            for name in ("LANG", "MAIL", "PATH", "SHELL"):
                if name in given.environment:
                    told[f"PBS_O_{name}"] = given.environment[name]
            return told
        told = {
            "SLURM_JOB_NAME": self.name,
            "SLURM_SUBMIT_DIR": given.folder,
            "SLURM_SUBMIT_HOST": given.host,
            "SLURM_TASKS_PER_NODE": str(self.asked.processes or 1),
        }
        told.update(self._of_sizes())
        if self.asked.export != "ALL":
            told["SLURM_EXPORT_ENV"] = self.asked.export
        if self.asked.array is not None:
            indices = self.asked.array.indices
            told["SLURM_ARRAY_TASK_COUNT"] = str(len(indices))
            told["SLURM_ARRAY_TASK_MAX"] = str(indices[-1])
            told["SLURM_ARRAY_TASK_MIN"] = str(indices[0])
            told["SLURM_ARRAY_TASK_STEP"] = str(self.asked.array.step)
        return told

    def _of_grid_engine(self) -> dict[str, str]:
        given, array = self.submission, self.asked.array
        told = {"JOB_NAME": self.name, "REQUEST": self.name, "SGE_O_HOME": given.home}
        told |= {"SGE_O_HOST": given.host, "SGE_O_LOGNAME": given.user, "SGE_O_WORKDIR": given.folder}
        tasks = ("SGE_TASK_FIRST", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE")
        if array is None:
            return {**told, **dict.fromkeys(("SGE_TASK_ID", *tasks), "undefined")}
        numbers = (array.indices[0], array.indices[-1], array.step)
        return {**told, **dict(zip(tasks, map(str, numbers), strict=True))}

    def _of_sizes(self) -> dict[str, str]:
        """Slurm tells a size only where it was asked for."""
        told, asked = {}, self.asked
        if "cpus" in self.submission.options:
            told["SLURM_CPUS_PER_TASK"] = str(self.submission.options["cpus"])
        elif asked.cpus is not None:
            told["SLURM_CPUS_PER_TASK"] = str(asked.cpus)
        if asked.processes is not None:
            told["SLURM_NTASKS"] = told["SLURM_NPROCS"] = str(asked.processes)
        if asked.cpus_per_gpu is not None:
            told["SLURM_CPUS_PER_GPU"] = str(asked.cpus_per_gpu)
        if asked.memory_per_cpu is not None and "memory" not in self.submission.options:
            told["SLURM_MEM_PER_CPU"] = str(asked.memory_per_cpu // _MEGABYTE)
        elif isinstance(memory := self.options.get("memory"), int):
            told["SLURM_MEM_PER_NODE"] = str(memory // _MEGABYTE)
        return told

    def _tasks(self) -> list[TaskInput]:
        command = [self.name, *self.submission.arguments]
        array = self.asked.array
        if array is None:
            return [TaskInput(command)]
        names = (self.asked.array_variable,) if self.asked.array_variable else INDEX[self.dialect]
        return [
            TaskInput(command, f"{self.name} {index}", None, {name: str(index) for name in names})
            for index in array.indices
        ]
