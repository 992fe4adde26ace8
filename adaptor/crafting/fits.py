"""Numbers of tasks that fit: on a node, in the unit of a request's p, in a request, and at a site. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import msgspec

from adaptor.crafting.situation import Demand, SiteRules
from adaptor.model import FreeSlot, QueueState, Request
from adaptor.resources import Gpus, Need, Node, TaskSize
from adaptor.units import counted, format_size, round_down, round_up


def as_given(queue: QueueState, task: TaskSize) -> TaskSize:
    """The size with the memory that the scheduler counts: its default where the task names none."""
    memory = task.memory
    if memory is None and queue.default_memory is not None:
        memory = int(min(queue.default_memory * task.processors, queue.allowed.max_memory.value))
    if memory is not None and queue.memory_step > 1:
        step = queue.memory_step * task.processors
        memory = math.ceil(memory / step) * step
    return msgspec.structs.replace(task, memory=memory)


def tasks_on(node: Node, task: TaskSize) -> int:
    """Tasks of this size that a node holds at the same time when it is empty.

    Of tasks that take several nodes: 1 where the node may be one of theirs.
    """
    held = tasks_in(task, node.processors, node.memory, node.gpus)
    return min(held, 1) if task.nodes > 1 else held


def tasks_in(task: TaskSize, processors: int, memory: int | None, gpus: Gpus) -> int:
    """Tasks of one size that run at the same time in a part of one node; `memory` is None if not counted."""
    held = processors // task.processors
    if task.memory and memory is not None:
        held = min(held, memory // task.memory)
    if task.gpus:
        count = sum(count for kind, count in gpus if task.gpu_type in ("", kind))
        held = min(held, count // task.whole_gpus * task.tasks_per_gpu)
    return held


def width(queue: QueueState | None, task: TaskSize) -> int:
    """The processors of a request that one task takes: those of whole nodes if it takes several nodes.

    Then the usual size of the nodes that hold it; where none is known, the processors that it asks for.
    """
    if task.nodes == 1:
        part, tasks = part_of(queue, task)
        return math.ceil(part.processors / tasks)
    sizes = Counter[int]()
    if queue:
        given = as_given(queue, task)
        sizes.update(node.processors for node in usable(queue) if tasks_on(node, given))
    return task.nodes * (sizes.most_common(1)[0][0] if sizes else task.processors)


def part_of(queue: QueueState | None, task: TaskSize) -> tuple[TaskSize, int]:
    """The least part of a node that a scheduler gives to a task of one node, and the tasks that run in it.

    Tasks that share a GPU are in one part. It has whole cores, and for its memory as many processors as the
    scheduler gives in addition.
    """
    step, most = (queue.processor_step, queue.most_memory) if queue else (1, None)
    if step == 1 and most is None and task.tasks_per_gpu == 1:
        return task, 1
    each = (as_given(queue, task) if queue else task).memory or 0
    together = task.tasks_per_gpu
    least = task.processors * together
    if most:
        least = max(least, math.ceil(each * together / most))
    processors = round_up(least, step)
    if queue and not task.gpus and processors >= 2 * task.processors:
        room = TaskSize(processors=task.processors, memory=each or None)
        nodes = max((tasks_on(node, room) for node in usable(queue)), default=processors)
        memory = processors * most // each if most and each else processors
        together = max(1, min(processors // task.processors, memory, nodes))
    part = TaskSize(
        processors=processors,
        memory=None if task.memory is None else task.memory * together,
        gpus=task.whole_gpus,
        gpu_type=task.gpu_type,
    )
    return part, together


def gives_any(queue: QueueState) -> bool:
    """Whether a scheduler gives any number of processors, whatever memory is asked for with them."""
    return queue.processor_step == 1 and queue.most_memory is None


def usable(queue: QueueState) -> Iterable[Node]:
    """The nodes that requests of the site may ever use, those out of service included."""
    return (node for node in queue.nodes if node.ours)


def each_kind(queue: QueueState) -> QueueState:
    """The queue with one of the nodes of each kind, where it is asked only whether any holds a task."""
    kinds = {(node.processors, node.memory, node.gpus): node for node in usable(queue)}
    return msgspec.structs.replace(queue, nodes=tuple(kinds.values()))


def placeable(queue: QueueState, task: TaskSize) -> int:
    """The processors of all tasks of this size that empty nodes hold at the same time.

    Where the nodes are not known, the processors of the site.
    """
    if queue.partitions:
        return max(placeable(partition, task) for partition in queue.partitions.values())
    if not queue.nodes:
        return queue.processors
    if task.nodes > 1 or gives_any(queue):
        given = as_given(queue, task)
        slots = sum(tasks_on(node, given) for node in usable(queue)) // task.nodes
        return min(queue.processors, slots * width(queue, task))
    part, _ = part_of(queue, task)
    given = as_given(queue, part)
    return min(queue.processors, sum(tasks_on(node, given) for node in usable(queue)) * part.processors)


def most_slots(rules: SiteRules, queue: QueueState | None, task: TaskSize) -> int:
    """Tasks of this size that a site can run at the same time, within its limits."""
    limits = rules.limits
    there = placeable(queue, task) if queue else limits.max_proc
    return min(limits.in_system * limits.max_proc, there) // width(queue, task)


def most_memory(queue: QueueState, task: TaskSize) -> int | None:
    """The most memory (bytes) with which a node holds a task that is else of this size.

    None: no node is known that does, or memory is not counted.
    """
    without = msgspec.structs.replace(task, memory=None)
    sizes = [node.memory for node in usable(queue) if node.memory and tasks_on(node, without)]
    step = queue.memory_step * task.processors
    return max(sizes) // step * step if sizes else None


def why_no_node_holds(queue: QueueState, task: TaskSize) -> str:
    """Why no node can ever run a task of this size; empty: one can, or none is known."""
    if queue.partitions:
        found = {name: why_no_node_holds(partition, task) for name, partition in queue.partitions.items()}
        if queue.closed or not all(found.values()):  # the nodes of a closed one are not known
            return ""
        return "; ".join(f"{name}: {why}" for name, why in found.items())
    return _why_not_allowed(queue, task) or _why_too_large(queue, task)


def _why_too_large(queue: QueueState, task: TaskSize) -> str:
    nodes, part = list(usable(queue)), task
    if task.nodes == 1 and not gives_any(queue):
        part, _ = part_of(queue, task)
    task = as_given(queue, task)
    fitting = sum(tasks_on(node, as_given(queue, part)) > 0 for node in nodes)
    if not nodes or fitting >= task.nodes:
        return ""
    if fitting:
        return f"each needs {task.nodes} nodes, and {fitting} of the site hold it; ask for fewer nodes"
    processors = counted(task.processors, "processor")
    wide = [node for node in nodes if node.processors >= task.processors]
    if wide and queue.most_memory and part.processors > max(node.processors for node in wide):
        return (
            f"each needs {format_size(task.memory or 0)}, for which the scheduler gives {part.processors} "
            f"processors on one node ({format_size(queue.most_memory)} each), and the largest node has "
            f"{max(node.processors for node in wide)}; ask for less memory"
        )
    if not wide:
        widest = max(node.processors for node in nodes)
        return f"each needs {processors} on one node, and the largest node has {widest}; ask for fewer cpus"
    able = [node for node in wide if node.gpus_of(task.gpu_type) >= task.whole_gpus]
    if not able:
        return _too_many_gpus(nodes, wide, task)
    needs = f"{format_size(task.memory or 0)} on one node with {processors}"
    if task.gpus:
        needs += f" and {counted(math.ceil(task.gpus), 'GPU')}"
    largest = format_size(max(node.memory or 0 for node in able))
    return f"each needs {needs}, and such a node has {largest}; ask for less memory"


def _too_many_gpus(nodes: list[Node], wide: list[Node], task: TaskSize) -> str:
    """A sentence on the largest number of GPUs with the task's processors on one node, and on their types."""
    kind = f"{task.gpu_type} GPU" if task.gpu_type else "GPU"
    need = f"{counted(task.whole_gpus, kind)} on one node with {counted(task.processors, 'processor')}"
    if most := max(node.gpus_of(task.gpu_type) for node in wide):
        return f"each needs {need}, and the most that such a node has is {most}; ask for fewer GPUs"
    types = sorted({type or "GPUs without a type" for node in nodes for type, _ in node.gpus})
    there = f"the site has {', '.join(types)}" if types else "the site has no GPUs"
    return f"each needs {need}, and {there if task.gpu_type or not types else 'no such node has any'}"


class RequestUnit(msgspec.Struct, frozen=True):
    """p is a multiple of `processors`."""

    processors: int
    tasks: int
    """Tasks that run in one unit at the same time."""
    each: int
    """Processors of one task."""

    def slots(self, processors: int) -> int:
        """Tasks that run at the same time on a number of processors; a task never spans two whole nodes."""
        whole, rest = divmod(processors, self.processors)
        return whole * self.tasks + min(self.tasks, rest // self.each)


def unit_of(rules: SiteRules, queue: QueueState | None, task: TaskSize) -> RequestUnit:
    """One task; the tasks that share a GPU; a whole node where the site gives whole nodes.

    `queue` is None where the nodes are not known yet.
    """
    each, node = width(queue, task), rules.granularity
    if task.nodes > 1:
        return RequestUnit(each, 1, each)
    if node > 1 and task.processors <= node:  # the scheduler may give any of the nodes that hold one
        held = [tasks_on(there, as_given(queue, task)) for there in usable(queue)] if queue else []
        return RequestUnit(node, min([node // task.processors, *filter(None, held)]), each)
    if node > 1:  # no task fits
        together = math.lcm(task.processors * task.tasks_per_gpu, node)
        return RequestUnit(together, together // task.processors, each)
    part, tasks = part_of(queue, task)
    return RequestUnit(part.processors, tasks, each)


def least_of(queue: QueueState | None, unit: RequestUnit) -> int:
    """The smallest p that the scheduler takes."""
    if queue is None:
        return unit.processors
    return max(queue.allowed.min_parts * unit.processors, round_up(queue.allowed.min_proc, unit.processors))


def _sizes_of(queue: QueueState, task: TaskSize, unit: RequestUnit) -> tuple[int, int]:
    """Bytes and GPUs of a unit; 0: none are asked for."""
    memory = (as_given(queue, task).memory or 0) * unit.tasks
    return memory * task.nodes, task.gpus_for(unit.tasks) * task.nodes


def _most_by_size(queue: QueueState | None, task: TaskSize, unit: RequestUnit) -> float:
    """Processors of a request that has the most memory or GPUs that the scheduler takes."""
    if queue is None:
        return math.inf
    memory, gpus = _sizes_of(queue, task, unit)
    allowed = ((queue.allowed.max_memory.value, memory), (queue.allowed.max_gpus.value, gpus))
    units = [most // each for most, each in allowed if each and not math.isinf(most)]
    return min(units, default=math.inf) * unit.processors


def _least_by_size(queue: QueueState | None, task: TaskSize, unit: RequestUnit) -> int:
    """Processors of a request that has the least memory and GPUs that the scheduler takes."""
    if queue is None:
        return 0
    memory, gpus = _sizes_of(queue, task, unit)
    wanted = ((queue.allowed.min_memory.value, memory), (queue.allowed.min_gpus.value, gpus))
    return max(math.ceil(least / each) * unit.processors if each else 0 for least, each in wanted)


def _why_not_allowed(queue: QueueState, task: TaskSize) -> str:
    """Why the scheduler takes no request for such tasks, however few or many they are; empty: it does."""
    allowed, memory = queue.allowed, as_given(queue, task).memory or 0
    if memory * task.nodes > allowed.max_memory.value:
        most = format_size(int(allowed.max_memory.value))
        return (
            f"each needs {format_size(memory * task.nodes)}, and a request may have {most} "
            f"({allowed.max_memory.source}); ask for less memory"
        )
    if (gpus := task.gpus_for(1) * task.nodes) > allowed.max_gpus.value:
        return (
            f"each needs {counted(gpus, 'GPU')}, and a request may have {int(allowed.max_gpus.value)} "
            f"({allowed.max_gpus.source}); ask for fewer"
        )
    if allowed.min_gpus.value > 0 and not task.gpus:
        return (
            f"each request must have {counted(int(allowed.min_gpus.value), 'GPU')} at least "
            f"({allowed.min_gpus.source}); ask for GPUs (--gpus 1), or set `qos` of this site to another"
        )
    if allowed.min_memory.value > 0 and not memory:
        return (
            f"each request must have {format_size(int(allowed.min_memory.value))} at least "
            f"({allowed.min_memory.source}); ask for memory (--mem)"
        )
    return ""


def on_nodes(unit: RequestUnit, rules: SiteRules, queue: QueueState, task: TaskSize) -> Need:
    """Chunks that one unit asks of the nodes: one, or one on each of the nodes of a task."""
    whole = task.nodes > 1 or rules.granularity > 1
    ours = frozenset(node.name for node in queue.nodes if node.ours)
    return Need(
        chunks=task.nodes,
        processors=unit.processors // task.nodes,
        memory=(as_given(queue, task).memory or 0) * unit.tasks,
        gpus=task.gpus_for(unit.tasks),
        gpu_type=task.gpu_type,
        scatter=whole,
        whole_nodes=whole,
        nodes=None if len(ours) == len(queue.nodes) else ours,
    )


def chunk_of(rules: SiteRules, queue: QueueState, task: TaskSize) -> Need:
    """Chunks that one unit of requests for tasks of this size asks of the nodes."""
    return on_nodes(unit_of(rules, queue, task), rules, queue, task)


def need_of(request: Request, rules: SiteRules, queue: QueueState, task: TaskSize | None) -> Need | None:
    """Chunks that a request for tasks of this size asks of the nodes; None: the nodes or the size are not
    known."""
    if task is None or not queue.nodes:
        return None
    chunk = chunk_of(rules, queue, task)
    units = request.p // (chunk.chunks * chunk.processors)
    return msgspec.structs.replace(chunk, chunks=chunk.chunks * units)


def for_work(rules: SiteRules, queue: QueueState | None, demand: Demand) -> SiteRules:
    """The rules with limits as `Limits.for_work` makes them for such tasks. A wide request has no more than
    what running jobs leave now, where that is a minute at least; narrow pilots share it."""
    limits, left = rules.limits, queue.allowed.work_left.value if queue is not None else math.inf
    if not limits.max_pilots and 60 <= left < limits.max_work:
        limits = msgspec.structs.replace(limits, max_work=left)
    if math.isinf(limits.max_work):
        return rules
    least = least_of(queue, unit_of(rules, queue, demand.task))
    limits = limits.for_work(least, demand.runtime + rules.pad)
    return msgspec.structs.replace(rules, limits=limits)


TINY = 1e-6  # differences in seconds or shares below this are rounding errors


def rounds_within(seconds: float, runtime: float, pad: float) -> int:
    """Tasks that one slot can run one after another in `seconds` of a pilot."""
    return max(0, math.floor((seconds - pad + TINY) / runtime))


class RequestShape(msgspec.Struct, frozen=True, kw_only=True):
    """The possible requests for tasks of one size and runtime, at a site with these rules."""

    rules: SiteRules
    site_processors: int
    """Processors on which such tasks can run at the same time (`placeable`)."""
    task: TaskSize
    unit: RequestUnit
    chunk: Need | None
    """Chunks that a unit asks of the nodes; None: the nodes are not known."""
    runtime: float
    least: int = 1
    """Processors that the scheduler wants a request to have at least."""
    most: float = math.inf
    """Processors of a request whose memory and GPUs the scheduler allows."""

    @classmethod
    def for_demand(cls, rules: SiteRules, queue: QueueState | None, demand: Demand) -> RequestShape:
        """`queue` is None where the size of the site is not known yet."""
        unit = unit_of(rules, queue, demand.task)
        return cls(
            rules=for_work(rules, queue, demand),
            site_processors=placeable(queue, demand.task) if queue else 0,
            task=demand.task,
            unit=unit,
            chunk=on_nodes(unit, rules, queue, demand.task) if queue and queue.nodes else None,
            runtime=demand.runtime,
            least=max(least_of(queue, unit), _least_by_size(queue, demand.task, unit)),
            most=_most_by_size(queue, demand.task, unit),
        )

    @property
    def widest(self) -> int:
        """The largest possible p; 0 if no task fits."""
        if self.task.nodes == 1 and self.task.processors > self.rules.granularity > 1:
            return 0  # a task runs on one node
        return self.fit(int(min(self.rules.limits.max_proc, self.site_processors, self.most)))

    def fit(self, processors: int) -> int:
        """The largest valid p up to `processors`; 0: none is valid."""
        p = processors // self.unit.processors * self.unit.processors
        return p if p >= self.least else 0

    def slots(self, processors: int) -> int:
        """Tasks that run at the same time in a request of p = `processors`."""
        return self.unit.slots(processors)

    def processors_for(self, tasks: int) -> int:
        """The least p on which `tasks` run at the same time, regardless of the limits; 0 for none."""
        return tasks and max(self.least, math.ceil(tasks / self.unit.tasks) * self.unit.processors)

    def rounds(self, tr: float) -> int:
        """Tasks that each slot of a request can run one after another in tr seconds."""
        return rounds_within(tr, self.runtime, self.rules.pad)

    def holds(self, processors: int, tr: float) -> int:
        """Tasks for which a request has time; for one in each slot at least, whatever the estimate."""
        return self.slots(processors) * max(1, self.rounds(tr))

    def longest_tr(self, duration: float, least: float | None = None) -> int:
        """The largest tr for a free slot of `duration` seconds (may be `math.inf`).

        A scheduler that starts requests with less than tr gives the whole slot, if the slot is surely long
        enough for the least time.

        Args:
            least: seconds with which a request is still of use; None: those of one task.
        """
        sure = self.sure_tr(duration)
        if self.rules.shrink_margin is None or sure < self.enough(least):
            return sure
        return self._tr_within(duration - self.rules.shrink_margin)

    def sure_tr(self, duration: float) -> int:
        """The largest tr that surely starts in a free slot, without being cut."""
        return self._tr_within(duration - self.rules.slot_margin)

    def enough(self, least: float | None = None) -> int:
        """The least time (see `longest_tr`) in the scheduler's resolution, at most max_tr."""
        needed = self.runtime + self.rules.pad if least is None else least
        return min(self.rules.limits.max_tr, round_up(needed - TINY, self.rules.time_resolution))

    def request(self, p: int, tr: int, least: int) -> Request:
        """The request that may be started with `least` seconds, where the scheduler does that."""
        return Request(p, tr, None if self.rules.shrink_margin is None else least).lasting(tr)

    def least_in(self, slot: FreeSlot, now: float) -> int:
        """The least time of a request for a free slot.

        One for now takes what is left when the scheduler sees it, down to one task. One that waits gives
        no more away than the margin: an earlier, shorter slot would cost it the long one.
        """
        return self.enough() if slot.start <= now else self.sure_tr(slot.duration)

    def _tr_within(self, seconds: float) -> int:
        max_tr, step = self.rules.limits.max_tr, self.rules.time_resolution
        if seconds >= round_up(max_tr, step):
            return max_tr
        return min(max_tr, max(0, round_down(seconds + TINY, step)))

    def tr_for(self, rounds: int, longest: int) -> int:
        """The tr in which each slot runs `rounds` tasks, in the scheduler's resolution, at most `longest`."""
        needed = max(rounds * self.runtime + self.rules.pad, self.rules.least_tr)
        return min(longest, round_up(needed - TINY, self.rules.time_resolution))
