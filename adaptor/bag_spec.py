"""Settings that all tasks of a bag share. Each option of a bag is declared here, once, as a field with an
`Option`.

The command line's `--key VALUE`, the `#ADAPTOR key=VALUE` of bag files, their help, defaults and checks are
read from these declarations (`adaptor/bagfile/options.py`); a test compares the table of docs/bags.md.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec

from adaptor.batch_script import BatchScript
from adaptor.guard_rails import EarlySignal, MostFails, TimeLimit
from adaptor.model import Allocation, Preference, PriceKind
from adaptor.option_kinds import (
    BAG_NAME,
    CANARY,
    DURATION,
    EARLY_SIGNAL,
    EXIT_CODES,
    FACTOR,
    GPUS,
    IMAGE,
    IMPLIED,
    INSTANT,
    LABEL,
    LABELS,
    LISTENERS,
    MEMORY_OR_AUTO,
    MOST_FAILS,
    NUMBERS,
    PATH,
    PATHS,
    PRIORITY,
    SHELL,
    TIME_LIMIT,
    Kind,
)
from adaptor.resources import TaskGpus, TaskSize
from adaptor.units import LARGEST

Section = Literal["Tasks", "Size of each task", "Limits", "Places and times", "Output", "Cost", "More"]
"""Options of one section stand together on the help page; those of `More` only on the long one."""


class Option(msgspec.Struct, frozen=True):
    """Makes a field of `BagSpec` or `BagInput` an option that people set.

    The kind of value follows from the field's type where that is a Literal, or an integer with
    `Meta(ge=…, le=…)`.
    """

    help: str
    """Meaning of the option, for `--help` and the docs; without a full stop."""
    kind: Kind = IMPLIED
    key: str = ""
    """The word that people write; empty: the field's name, with a dash for each `_`.

    `#ADAPTOR` lines may have the field's name too.
    """
    default: str = ""
    """The default in words; empty: the field's default says it."""
    section: Section = "More"
    """Section of the help page."""
    field: str = ""
    """Field of `BagSpec` to which the option belongs, set by `bagfile.options`."""


MOST = 1_000_000_000  # of processors, retries or replicas: beyond it is a typing error
AtLeast0 = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
AtLeast1 = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
ExitCode = Annotated[int, msgspec.Meta(ge=1, le=255)]
Priority = Annotated[int, msgspec.Meta(ge=-999_999, le=999_999)]
Size = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]

DEFAULT_OUTPUT = "adaptor-{bag}"
"""The folder for a bag's output, below its `cwd`; the journal puts the bag's number in place of `{bag}`."""


class Interpreter(msgspec.Struct, frozen=True):
    """The Python that runs the calls of a bag: that of the process that made them."""

    command: tuple[str, ...]
    """The interpreter's path, and its options."""
    version: str
    """Version of Python, such as 3.12: calls that were pickled by one version are read by the same."""
    path: tuple[str, ...] = ()
    """Folders in which it finds modules (`sys.path`)."""
    initializer: bytes = b""
    """A pickled call (`protocol.messages`) that each of its processes runs first; empty: none."""


BUNDLES = "bundles"  # the folder for archives, where the access files of workers are


class StagedItem(msgspec.Struct, frozen=True):
    """A folder or file of a bundle."""

    path: str
    """Absolute, as its user named it."""
    name: str
    """In the bundle, and in the copy on a node."""
    real: str
    """Its path without links."""
    environment: Literal["", "venv", "conda"] = ""
    """The kind of Python environment; empty: no environment."""


class Bundle(msgspec.Struct, frozen=True):
    """The folders and files that a bag stages, in one archive of the state directory (`adaptor.bundles`)."""

    digest: str
    """SHA-256 of the archive, hexadecimal."""
    items: tuple[StagedItem, ...]
    size: int
    """Bytes of its files."""
    files: int
    executable: bool = False
    """Whether programs or libraries are among its files: these need a disk that is mounted with exec."""


class TaskKind(msgspec.Struct, frozen=True):
    """Tasks of a bag that are alike: the same programs with the same options."""

    key: str
    """Key of the kind, equal for tasks of the same kind in any bag."""
    name: str
    """Name for people, e.g. `fit.py`."""
    tasks: int
    """Number of the bag's tasks of this kind, about."""


class BagSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that all tasks of a bag share; times are epoch seconds, durations seconds, memory bytes."""

    name: Annotated[str, Option("name of the bag", BAG_NAME, default="the file's name", section="Output")]
    cpus: Annotated[
        AtLeast1, Option("processors of each task, all on one node", section="Size of each task")
    ] = 1
    memory: Annotated[
        Size | Literal["auto"] | None,
        Option(
            "memory of each task: 4G, or auto for what earlier bags needed",
            MEMORY_OR_AUTO,
            key="mem",
            section="Size of each task",
        ),
    ] = None
    gpus: Annotated[
        TaskGpus | None,
        Option(
            "GPUs of each task: 2, a100:1, or 0.5 where two tasks share one",
            GPUS,
            section="Size of each task",
        ),
    ] = None
    nodes: Annotated[
        AtLeast1,
        Option(
            "nodes of each task: 2 or more are whole nodes, each with the cpus, mem and gpus",
            section="Size of each task",
        ),
    ] = 1
    bind: Annotated[
        Literal["yes", "no"], Option("whether each task is bound to its processors: yes or no")
    ] = "yes"
    time: Annotated[
        float | None,
        Option(
            "how long a task is expected to take, such as 10m",
            DURATION,
            default="learned",
            section="Size of each task",
        ),
    ] = None
    kind: Annotated[
        str | None,
        Option(
            "name of the kind of its tasks: bags of the same kind learn from each other",
            LABEL,
            default="found from the tasks' commands",
        ),
    ] = None
    timeout: Annotated[
        TimeLimit | None,
        Option(
            "after how long a task is ended: 30m, or 300% of what a task is expected to take",
            TIME_LIMIT,
            section="Limits",
        ),
    ] = None
    retries: Annotated[AtLeast0, Option("how often a failed task is tried again", section="Limits")] = 0
    on_oom: Annotated[
        float | None,
        Option(
            "memory factor for retrying a task that ran out of memory, such as 2x",
            FACTOR,
            default="no retry with more memory",
        ),
    ] = None
    max_fails: Annotated[
        MostFails | None,
        Option("at how many failed tasks the bag pauses: 10, or 5% of them", MOST_FAILS, section="Limits"),
    ] = None
    canary: Annotated[
        Literal["yes", "no"] | AtLeast1,
        Option(
            "whether the bag pauses if its first attempts all fail: yes, no, or how many tasks must succeed"
            " before more start",
            CANARY,
        ),
    ] = "yes"
    max_running: Annotated[
        AtLeast1 | None,
        Option("how many tasks run at the same time, at most", default="no limit", section="Limits"),
    ] = None
    priority: Annotated[
        Priority,
        Option(
            "bags with a larger one go first among those of the same user",
            PRIORITY,
            section="Places and times",
        ),
    ] = 0
    requeue_on: Annotated[
        tuple[ExitCode, ...],
        Option(
            "exit codes, separated by commas, that say: checkpointed, start me again to go on",
            EXIT_CODES,
            default="none",
        ),
    ] = ()
    signal: Annotated[
        EarlySignal | None,
        Option("which signal a task gets how long before it is ended, such as USR1@120", EARLY_SIGNAL),
    ] = None
    max_lost: Annotated[
        AtLeast0, Option("a task fails after this many deaths of its worker; 0 for no limit")
    ] = 3
    replicas: Annotated[
        AtLeast0,
        Option("extra attempts of a running task on idle processors at the end of the bag; 0 for none"),
    ] = 1
    deadline: Annotated[
        float | None,
        Option("when the bag must be done: 12h or 2026-11-22T08:00", INSTANT, section="Places and times"),
    ] = None
    begin: Annotated[
        float | None,
        Option(
            "when its first task may start: 22:00, 2h or 2026-11-22T22:00",
            INSTANT,
            default="at once",
            section="Places and times",
        ),
    ] = None
    prefer: Annotated[
        Preference | None,
        Option("whether cost or time matters more: cheap, balanced or fast", section="Cost"),
    ] = None
    allocation: Annotated[
        Allocation,
        Option("where its tasks run: explicit (formal requests), transparent (donated nodes) or mixed"),
    ] = "mixed"
    order: Annotated[
        Literal["random", "file"] | None,
        Option(
            "in which order tasks start: file, or random, which forecasts need",
            default="random for a bag with a budget, a deadline or a preference, else file",
        ),
    ] = None
    sites: Annotated[
        tuple[str, ...],
        Option(
            "sites that may run it, separated by commas",
            LABELS,
            key="site",
            default="any",
            section="Places and times",
        ),
    ] = ()
    notify: Annotated[
        tuple[str, ...],
        Option(
            "who gets a message at its end, pause and first failure: channels of the configuration, or @FILE",
            LISTENERS,
            default="`notify.default` of the configuration",
            section="Output",
        ),
    ] = ()
    after: Annotated[
        tuple[int, ...],
        Option(
            "bags that must be done before it starts, by their numbers; if one fails, its tasks fail",
            NUMBERS,
            default="none",
            section="Places and times",
        ),
    ] = ()
    after_any: Annotated[
        tuple[int, ...],
        Option("bags that must have ended before it starts, however", NUMBERS, default="none"),
    ] = ()
    shell: Annotated[
        str | None,
        Option(
            "shell that runs the lines: a program and its options, such as sh, zsh or 'bash -l'",
            SHELL,
            default="`shell` of the site, else bash where the node has it, else /bin/sh",
        ),
    ] = None
    cwd: Annotated[
        str, Option("folder in which the tasks run", PATH, default="the current folder", section="Output")
    ]
    output: Annotated[
        str,
        Option(
            "folder for the tasks' output",
            PATH,
            default="adaptor-BAG in the folder of the tasks",
            section="Output",
        ),
    ]
    output_files: Annotated[
        Literal["each", "packed", "none"],
        Option("files of the output: each task's own, packed into an archive by worker, or none"),
    ] = "each"
    stage: Annotated[
        tuple[str, ...],
        Option(
            "folders and files, such as .venv, that each node copies to its own disk once",
            PATHS,
            default="none",
            section="Places and times",
        ),
    ] = ()
    container: Annotated[
        str | None,
        Option(
            "image in which its tasks run, by Apptainer or Singularity; each node copies it once",
            IMAGE,
            section="Places and times",
        ),
    ] = None
    environment: dict[str, str]
    bundle: Bundle | None = None
    """The archive of `stage` and `container`, which the client makes."""
    umask: int | None = None
    """File mode mask of its tasks: that of the process that submits it; None: the worker's."""
    script: BatchScript | None = None
    """The script of which its tasks run a copy; None: their commands say all."""
    interpreter: Interpreter | None = None
    """Interpreter of its calls; None: it has commands only."""

    close_idle: float = 0.0
    """Seconds after which it closes by itself if it is open, has no unfinished task, and no program follows
    it; 0: never."""
    kinds: tuple[TaskKind, ...] = ()
    """Kinds of its tasks, the most frequent first; the daemon recognises them."""

    @property
    def staged(self) -> tuple[str, ...]:
        """The paths that each node copies to its own disk."""
        return self.stage if self.container is None else (*self.stage, self.container)

    @property
    def task(self) -> TaskSize:
        """Resources of each task."""
        memory = None if self.memory == "auto" else self.memory
        size = TaskSize(processors=self.cpus, memory=memory, nodes=self.nodes)
        if self.gpus is None:
            return size
        return msgspec.structs.replace(size, gpus=self.gpus.count, gpu_type=self.gpus.type)

    @property
    def ended_after(self) -> float:
        """Seconds after which each of its tasks is ended; infinity: never, or after parts of a runtime."""
        if self.timeout is None or self.timeout.seconds is None:
            return math.inf
        return self.timeout.seconds

    @property
    def first_tasks(self) -> int:
        """Tasks that must have a result before more than these run; 0: none."""
        return self.canary if isinstance(self.canary, int) else 0

    @property
    def aims(self) -> bool:
        """True if a deadline or a preference constrains the requests."""
        return self.deadline is not None or self.prefer is not None

    @property
    def paced(self) -> bool:
        """True if processors are requested in steps, as tasks finish; a fast bag gets what is free at
        once."""
        return self.aims and self.prefer != "fast"

    @property
    def price_kind(self) -> PriceKind:
        """Kind of price of its pilots; a mixed bag pays less for those on donated nodes."""
        return "donated" if self.allocation == "transparent" else "explicit"

    def with_order(self, *, budget: bool) -> BagSpec:
        """The bag with its usual order, if its user names none.

        Estimates from the first tasks hold for the rest only if these are a random sample (A²HA §3.2).
        """
        if self.order is not None:
            return self
        return msgspec.structs.replace(self, order="random" if self.aims or budget else "file")

    def allows(self, site: str) -> bool:
        return not self.sites or site in self.sites
