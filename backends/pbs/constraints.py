"""The chunks of a request, in the form that PBS takes, and the nodes on which they may run. Pure.

PBS gives a chunk a node that has all of several values. It knows no "one of these" and no "none of these".
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator

from adaptor.config.schema import SiteConfig
from adaptor.crafting.fits import tasks_on
from adaptor.resources import Node, TaskSize
from backends.base import PilotOrder, SchedulerError
from backends.shape import RequestParts


class PbsShape(RequestParts, frozen=True, kw_only=True):
    """A shape whose parts are chunks."""

    node: str = ""  # the very node of the only chunk, where one is named
    traits: tuple[tuple[str, str], ...] = ()
    """Traits that the node of each chunk must have in addition (`backends.pbs.constraints`)."""


def shape_of(order: PilotOrder, processors_per_node: int | None, machines: Collection[Node]) -> PbsShape:
    """The donated node, whole nodes, or one chunk per task that runs at a time.

    Small chunks fit into every gap. Tasks that share a GPU are one chunk.

    Args:
        processors_per_node: given where only whole nodes are asked for.
        machines: of the site.
    """
    task, p = order.task, order.request.p
    if order.node:
        # With all GPUs of the node that its tasks can use.
        kind = task.gpu_type if task.gpus else ""
        gpus = sum(node.gpus_of(kind) for node in machines if node.name == order.node) if task.gpus else 0
        part = TaskSize(processors=p, gpus=gpus, gpu_type=kind)
        return PbsShape(count=1, part=part, whole_nodes=True, node=order.node)
    if task.nodes > 1:
        # Processors of most of the machines that may be one of a task's; as `adaptor.crafting.fits.width`.
        sizes = [node.processors for node in machines if node.ours and tasks_on(node, task)]
        size = max(sizes, key=sizes.count, default=task.processors)
        return _of_tasks(1, math.ceil(p / size), size, task, whole_nodes=True)
    if processors_per_node is not None:
        # As many as fit on the least of the nodes that hold any, for PBS may give that.
        held = [tasks for node in machines if node.ours and (tasks := tasks_on(node, task))]
        tasks = max(1, min([processors_per_node // task.processors, *held]))
        chunks = math.ceil(p / processors_per_node)
        return _of_tasks(tasks, chunks, processors_per_node, task, whole_nodes=True)
    together = min(task.tasks_per_gpu, max(1, p // task.processors))
    each = task.processors * together
    return _of_tasks(together, p // each, each, task, whole_nodes=False)


def _of_tasks(tasks: int, chunks: int, processors: int, task: TaskSize, *, whole_nodes: bool) -> PbsShape:
    """Chunks of a number of tasks each."""
    part = TaskSize(
        processors=processors,
        memory=None if task.memory is None else tasks * task.memory,
        gpus=task.gpus_for(tasks) if task.gpus else 0,
        gpu_type=task.gpu_type if task.gpus else "",
    )
    return PbsShape(count=chunks, part=part, whole_nodes=whole_nodes)


_KEYS = ("constraint", "nodelist", "exclude")
HOST = "host"  # the resource that names a machine
_WORD = re.compile(r"[A-Za-z0-9_][\w.-]*")
_PAIR = re.compile(r"([A-Za-z_]\w*)=([\w./-]+)")
_OWN_GROUP = "have them marked by a resource (or a queue) of their own and name that"


def openpbs_traits(
    constraint: str | None, nodelist: str | None = None, exclude: str | None = None
) -> dict[str, str]:
    """Resources and their values, of `gpu_type=a100&bigmem` and a node.

    Raises SchedulerError: OpenPBS cannot be asked for that.
    """
    found = _host(nodelist, exclude)
    for word in _words(constraint):
        pair = _PAIR.fullmatch(word)
        found[pair[1] if pair else _plain("constraint", word)] = pair[2] if pair else "True"
    return found


def node_traits(site: SiteConfig) -> dict[str, str]:
    """Traits that each chunk of a site's requests asks of its node.

    Raises SchedulerError: PBS cannot express them.
    """
    return openpbs_traits(site.constraint, site.nodelist, site.exclude)


def key_problems(site: SiteConfig) -> Iterator[tuple[str, str]]:
    """Keys that PBS cannot express, and why."""
    for key in _KEYS:
        try:
            openpbs_traits(**{name: getattr(site, name) if name == key else None for name in _KEYS})
        except SchedulerError as problem:
            yield key, str(problem).removeprefix(f"{key}: ")
    for key in ("gres", "licenses"):
        if getattr(site, key) is not None:
            yield key, "is not known to PBS; write what qsub takes as extra_args"


def _words(constraint: str | None) -> list[str]:
    return [word.strip() for word in re.split("[&,]", constraint)] if constraint else []


def _host(nodelist: str | None, exclude: str | None) -> dict[str, str]:
    if exclude:
        raise SchedulerError(
            f"exclude: {exclude}: PBS cannot be asked to leave nodes out; {_OWN_GROUP} as `constraint`"
        )
    if not nodelist:
        return {}
    if not _WORD.fullmatch(nodelist):
        raise SchedulerError(
            f"nodelist: {nodelist}: PBS can be asked for one node only, or for all; "
            f"{_OWN_GROUP} as `constraint`"
        )
    return {HOST: nodelist}


def _plain(key: str, word: str) -> str:
    if not _WORD.fullmatch(word):
        raise SchedulerError(
            f"{key}: {word or 'a word is missing'}: PBS can be asked for nodes that have all of several "
            f"values (`name=value&name`), nothing else; {_OWN_GROUP}"
        )
    return word
