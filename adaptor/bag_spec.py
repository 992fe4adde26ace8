"""What all tasks of a bag share. Each option of a bag is declared here, once, as a field with an `Option`.

The command line's `--key VALUE`, the `#ADAPTOR key=VALUE` of bag files, their help, defaults and checks are
read from these declarations (`adaptor/bagfile/options.py`); a test holds the table of docs/bags.md to them.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from adaptor.model import Allocation, Preference
from adaptor.option_kinds import INSTANT, LABEL, LABELS, MEMORY, PATH, Kind
from adaptor.units import LARGEST


class Option(msgspec.Struct, frozen=True):
    """Makes a field of `BagSpec` or `BagInput` an option that people set.

    The kind of value follows from the field's type where that is a Literal, or an integer with
    `Meta(ge=…, le=…)`.
    """

    help: str
    """What it means, for `--help` and the docs; without a full stop."""
    kind: Kind | None = None
    key: str = ""
    """The word that people write; empty: the field's name."""
    synonyms: tuple[str, ...] = ()
    """Other words for `#ADAPTOR` lines."""
    default: str = ""
    """The default in words; empty: the field's default says it."""


MOST = 1_000_000_000
"""Of processors, retries or replicas: beyond it is a typing error."""
AtLeast0 = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
AtLeast1 = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
Size = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]

DEFAULT_OUTPUT = "adaptor-{bag}"
"""The folder for a bag's output, below its `cwd`; the journal puts the bag's number in place of `{bag}`."""


class BagSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What all tasks of a bag share; times are epoch seconds, durations seconds, memory bytes."""

    name: Annotated[str, Option("name of the bag", LABEL, default="the file's name")]
    cpus: Annotated[AtLeast1, Option("processors of each task, all on one node")] = 1
    memory: Annotated[Size | None, Option("memory of each task, such as 4G", MEMORY, key="mem")] = None
    retries: Annotated[AtLeast0, Option("how often a failed task is tried again")] = 3
    max_lost: Annotated[
        AtLeast0,
        Option(
            "after how many deaths of its worker a task is not tried again; 0 for no limit",
            key="max-lost",
            synonyms=("max_lost",),
        ),
    ] = 3
    replicas: Annotated[
        AtLeast0,
        Option("extra attempts of a running task on idle processors at the end of the bag; 0 for none"),
    ] = 1
    deadline: Annotated[
        float | None, Option("when the bag must be done: 12h, or 2026-11-22T08:00", INSTANT)
    ] = None
    prefer: Annotated[Preference | None, Option("how much is bought at a time: cheap, balanced or fast")] = (
        None
    )
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
            synonyms=("sites",),
            default="any",
        ),
    ] = ()
    cwd: Annotated[str, Option("folder in which the tasks run", PATH, default="the current folder")]
    output: Annotated[
        str, Option("folder for the tasks' output", PATH, default="adaptor-BAG in the folder of the tasks")
    ]
    environment: dict[str, str]
    runtimes: dict[str, float] = {}
    """By site: the runtime assumed of a task before any has finished, where a quote has sampled it."""
    slots: dict[str, int] = {}
    """By site: tasks that may run there at the same time, as chosen from a quote; empty: no quote."""

    @property
    def aims(self) -> bool:
        """True if a deadline, a preference or a quote constrains what is bought."""
        return self.deadline is not None or self.prefer is not None or bool(self.slots)

    def with_order(self, *, budget: bool) -> BagSpec:
        """With the order that it has where its user names none.

        Estimates from the first tasks hold for the rest only where these are a random sample (A²HA §3.2).
        """
        if self.order is not None:
            return self
        return msgspec.structs.replace(self, order="random" if self.aims or budget else "file")

    def allows(self, site: str) -> bool:
        return not self.sites or site in self.sites
