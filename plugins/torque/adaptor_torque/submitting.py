"""The arguments of Torque's qsub for an order, and what its answer means."""

from __future__ import annotations

import re
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor_torque.parse import TAG
from backends.base import PilotOrder
from backends.commands import CommandAnswer
from backends.pbs.constraints import HOST
from backends.pbs.shape import PbsShape
from backends.scripts import Submitter, last_line_with

LOG = "pbs-pilot.out"
"""In the pilot's folder: what the script prints, and Torque about it."""
_LONGEST_NAME = 15
_NEVER_ARRIVED = ("cannot connect to server", "Connection refused", "cannot be loaded", "trqauthd")
"""The request did not reach pbs_server."""
_SAID_NO = ("submit error", "administratively rejected", "illegal", "usage:", "can not be run as root")


def arguments_of(
    order: PilotOrder, site: SiteConfig, shape: PbsShape, script: Path, per_node: int
) -> list[str]:
    """All arguments of qsub.

    Args:
        per_node: chunks that the usual node holds.
    """
    options = [
        *("-N", short_name(order.tag)),
        *("-S", "/bin/bash"),  # not whatever the user's login shell is
        *("-r", "n"),  # a pilot that starts anew would hold processors that the planner does not know of
        *("-j", "oe", "-o", str(script.parent / LOG)),
        *("-l", f"nodes={nodes_wanted(shape, per_node)}"),
        *("-l", f"walltime={order.request.tr}"),
        *("-v", f"{TAG}={order.tag}"),
    ]
    if shape.memory is not None:
        options += ["-l", f"mem={shape.memory * shape.chunks}b"]
    for option, value in (("-q", site.partition), ("-A", site.account)):
        if value is not None:
            options += [option, value]
    if site.qos is not None:
        options += ["-l", f"qos={site.qos}"]
    return [*options, *site.extra_args, str(script)]


def nodes_wanted(shape: PbsShape, per_node: int) -> str:
    """The specification for `-l nodes=`: full nodes, and one with the rest.

    Whether `nodes=4:ppn=1` may lie on one node is each scheduler's own affair; this form means the same
    to all of them.
    """
    if shape.node:
        return _part(shape.node, 1, shape)
    each = 1 if shape.whole_nodes else max(1, min(shape.chunks, per_node))
    full, rest = divmod(shape.chunks, each)
    host = dict(shape.traits).get(HOST)
    return "+".join([_part(host or str(full), each, shape), *([_part("1", rest, shape)] if rest else [])])


def _part(nodes: str, chunks: int, shape: PbsShape) -> str:
    """Args: chunks: on each of these nodes."""
    gpus = f":gpus={chunks * shape.gpus}" if shape.gpus else ""
    properties = "".join(f":{value}" for name, value in shape.traits if name != HOST)
    return f"{nodes}:ppn={chunks * shape.processors}{gpus}{properties}"


def short_name(tag: str) -> str:
    """A job name that every version takes."""
    own = tag.rpartition(".")[2]
    return f"adaptor.{re.sub(r'[^A-Za-z0-9_-]', '_', own)}"[:_LONGEST_NAME]


_UNCERTAIN = re.compile(r"[Ss]ocket|Time ?out|End of File|shutting down")
"""qsub lost the server in the middle (the PBSE_SOCKET_… errors, PBSE_TIMEOUT)."""


def _refused(answer: CommandAnswer) -> bool:
    return any(words in answer.errors for words in _SAID_NO) and not _UNCERTAIN.search(answer.errors)


accepted_id = Submitter(
    program="qsub",
    scheduler="Torque",
    id_in=last_line_with(r"\d+(\[\])?\.\S+"),
    refused=_refused,
    never_arrived=_NEVER_ARRIVED,
).accepted_id
