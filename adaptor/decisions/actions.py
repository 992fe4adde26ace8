"""What a decision asks its driver to do, each with its reason. Frozen types."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.crafting.situation import Demand
from adaptor.model import CraftedRequest


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """Submit a request. A driver that was refused one submits no other of the same step."""

    crafted: CraftedRequest
    demand: Demand
    """The shape of the tasks that it is for."""
    payers: Mapping[int, float]
    """By bag: its weight in the cost."""
    node: str = ""
    """The idle node that it is for; empty: a formal request."""


class Withdraw(msgspec.Struct, frozen=True):
    """Take a pilot back that has not started; one that has started meanwhile stays."""

    pilot: int
    reason: str


class End(msgspec.Struct, frozen=True):
    """End a pilot, queued or running."""

    pilot: int
    reason: str
    avoid_node: bool = False
    """Whether its node is not to be tried again for a while."""


class Withhold(msgspec.Struct, frozen=True):
    """Nothing more is submitted for now although tasks wait."""

    reason: str
    donated: bool = False
    """Whether this is about donated nodes; then an empty reason says that nothing stands in the way."""


class Explain(msgspec.Struct, frozen=True):
    """Tell the user, for `adaptor why`."""

    kind: str
    text: str


class Remark(msgspec.Struct, frozen=True):
    """Note with a pilot what is wrong with it."""

    pilot: int
    text: str


class LengthenPad(msgspec.Struct, frozen=True):
    """Pilots start up more slowly than their site's pad says."""

    pad: float
    """Seconds."""


class Wake(msgspec.Struct, frozen=True):
    """Let another site decide soon."""

    site: str


Action = Submit | Withdraw | End | Withhold | Explain | Remark | LengthenPad | Wake
