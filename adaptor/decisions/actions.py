"""Actions that a decision asks of its driver, each with its reason. Frozen types.

`SubmitRequest`, `Withdraw`, `Reshape` and `Withhold` are the planner's (`adaptor.crafting.situation`). A
driver withdraws or changes a pilot only while it has not started.
"""

from __future__ import annotations

import msgspec

from adaptor.api import ExplanationKind
from adaptor.crafting.situation import Reshape, SubmitRequest, Withdraw, Withhold
from adaptor.forecast.calibration import Raw
from adaptor.forecast.record import FirstForecast
from adaptor.reports import Remedy
from adaptor.resources import TaskSize


class WithdrawStuck(msgspec.Struct, frozen=True):
    """Cancel a queued pilot that the scheduler does not start."""

    pilot: int
    reason: str
    remedy: Remedy = Remedy.OTHER
    """The change by which another request may start instead."""
    kept: float = 0.0
    """Seconds for which requests as large count as impossible."""
    last: bool = True
    """Whether there is no smaller one to try: tasks of its shape then pause for a while."""


class GiveUp(msgspec.Struct, frozen=True):
    """End the waiting tasks of a bag that have this size as failed: nothing can ever run them."""

    bag: int
    reason: str
    task: TaskSize | None = None
    """Tasks to give up; None: all."""


class End(msgspec.Struct, frozen=True):
    """End a pilot, queued or running."""

    pilot: int
    reason: str
    avoid_node: bool = False
    """Whether to leave its node alone for a while."""


class Prolong(msgspec.Struct, frozen=True):
    """Pay for more of the walltime of a running pilot."""

    pilot: int
    paid: int
    """Seconds since its start."""


class WithholdNodes(msgspec.Struct, frozen=True):
    """Use no more donated nodes for now."""

    reason: str
    """The reason in a sentence; empty: nothing stands in the way, or nothing waits."""


class Explain(msgspec.Struct, frozen=True):
    """A line of `adaptor why`."""

    kind: ExplanationKind
    text: str
    pilot: int | None = None
    """Pilot that the explanation concerns; None: it concerns the bags, or the site."""
    bags: tuple[int, ...] = ()
    """Bags that the explanation concerns; empty: its pilot, or all of the site."""


class Remark(msgspec.Struct, frozen=True):
    """Note with a pilot what is wrong with it, and report it once for each node or cause."""

    pilot: int
    text: str
    """The remark in a sentence; empty: it holds no longer."""
    about: str = ""
    """A node, NODES for those without a worker, or WAITS; empty: the pilot, until its first worker calls."""


NODES = "nodes without a worker"
WAITS = "why it waits"


class LengthenPad(msgspec.Struct, frozen=True):
    """Pilots start up more slowly than their site's pad says."""

    pad: float
    """Seconds."""


class KeepForecast(msgspec.Struct, frozen=True):
    """Keep what a forecast of a bag said, unless that is kept already."""

    bag: int
    first: FirstForecast | None
    """The record is counted from it; None: it is no complete one, or not the first."""
    raw: Raw | None
    """Simulated interval by which later forecasts of its kind are calibrated; None: it is not the first of
    its kind."""


class Wake(msgspec.Struct, frozen=True):
    """Let another site decide soon."""

    site: str


Action = (
    SubmitRequest
    | Withdraw
    | Reshape
    | WithdrawStuck
    | End
    | Prolong
    | GiveUp
    | Withhold
    | WithholdNodes
    | Explain
    | Remark
    | LengthenPad
    | KeepForecast
    | Wake
)
