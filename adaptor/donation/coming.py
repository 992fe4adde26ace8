"""Nodes that are expected to become idle, by the learned rate and lengths of idle periods. Pure.

De Rose et al. (2008, §5): cheaper resources are worth waiting for as long as the time to the deadline allows.
"""

from __future__ import annotations

import math

import msgspec

from adaptor.donation.fitting import room
from adaptor.donation.idleness import EDGES, Hazard, Idleness

_NONE = 1e-6
"""Fewer nodes are none."""


class NodesToCome(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that will have become idle after some time, in expectation."""

    nodes: float
    """Idle then, for at least `age`."""
    wait: float
    """Seconds after which that many, all at once, would give as many node-seconds until then."""
    age: float
    """Seconds for which a node must have been idle before tasks are started there."""
    lasting: float
    """Mean seconds for which it stays idle from then on."""


def nodes_to_come(
    hazard: Hazard, idleness: Idleness, seconds: float, needs: float, probability: float
) -> NodesToCome | None:
    """The nodes to come within some seconds; None: none is expected to be of use by then.

    Never more than there were in the past: the pieces of the hazard are long, and so are its oldest nodes.

    Args:
        hazard: as learned from `idleness`.
        needs: seconds of a task.
        probability: with which a task must finish before its node is taken, to be started there.
    """
    ages = (edge for edge in EDGES if room(hazard, edge, math.inf, probability) >= needs)
    age = next(ages, math.inf)
    if age >= seconds:
        return None
    nodes, node_seconds = hazard.idle_until(age, seconds)
    expected = min(idleness.begins * nodes, idleness.usual(age))
    if expected < _NONE:
        return None
    return NodesToCome(
        nodes=expected,
        wait=min(seconds, max(age, seconds - node_seconds / nodes)),
        age=age,
        lasting=nodes / hazard.survival(0.0, age),
    )
