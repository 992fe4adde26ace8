"""Resources that a request takes from this machine, or the reason why it can never have them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.processes.devices import ids_of
from adaptor.reports import Remedy
from adaptor.resources import Gpus, Node, Part, TaskSize
from adaptor.units import counted, format_size
from backends.base import PilotOrder, SubmitRefused
from backends.findings import Finding, error, ok, warning

NODE = "local"  # the name of the only node
_CHOSEN = "CUDA_VISIBLE_DEVICES"
_DEVICE = re.compile(r"nvidia(\d+)")


def devices(
    configured: int | Collection[int | str] | None,
    environment: Mapping[str, str] = os.environ,
    folder: Path = Path("/dev"),
) -> tuple[str, ...]:
    """Their ids, as the site's `gpus` says: a number of them from 0 on, or these.

    Else those that this process may use by its environment, or else those of NVIDIA that are there.
    """
    if isinstance(configured, int):
        return tuple(map(str, range(configured)))
    if configured is not None:
        return tuple(dict.fromkeys(map(str, configured)))
    if _CHOSEN in environment:
        return ids_of(environment[_CHOSEN])
    found = (_DEVICE.fullmatch(path.name) for path in folder.glob("nvidia[0-9]*"))
    return tuple(map(str, sorted(int(match[1]) for match in found if match)))


class LocalMachine(msgspec.Struct, frozen=True):
    """Resources of the local site."""

    processors: int
    memory: int  # bytes
    devices: tuple[str, ...] = ()  # the ids of its GPUs

    @property
    def node(self) -> Node:
        gpus = _gpus(len(self.devices))
        return Node(name=NODE, processors=self.processors, memory=self.memory, gpus=gpus)


class Admission(msgspec.Struct, frozen=True):
    """Resources that a job takes, and those that its worker may use."""

    holds: Part  # its memory is 0, and not counted, where its tasks do not say what they need
    memory: int  # bytes: what it holds, or of a job that does not say, as much as goes with its processors


def usable_processors() -> int:
    """Number of processors of this machine on which this process may run."""
    return len(os.sched_getaffinity(0))


def this_machine(processors: int | None, gpus: int | Sequence[int | str] | None = None) -> LocalMachine:
    """The resources of this machine, with the user's number of processors; None: all that we may run on.

    `gpus`: as for `devices`.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return LocalMachine(processors or usable_processors(), memory, devices(gpus))


def admit(order: PilotOrder, machine: LocalMachine) -> Admission:
    """Resources that the order's tasks need together.

    Raises SubmitRefused: the request is larger than the machine, or no request at all.
    """
    p, tr, task = order.request.p, order.request.tr, order.task
    if p < 1 or tr < 1:
        raise SubmitRefused(f"a request of {p} processors for {tr} s: both must be 1 or more")
    tasks = p // task.processors
    gpus = task.gpus_for(tasks) if task.gpus else 0
    needs = Part(node=NODE, processors=p, memory=tasks * (task.memory or 0), gpus=_gpus(gpus))
    problem = _too_large(task, needs, gpus, machine)
    if problem:
        raise SubmitRefused(problem, Remedy.NARROWER)
    return Admission(needs, needs.memory or machine.memory * p // machine.processors)


def _gpus(count: int) -> Gpus:
    """The local site does not know types."""
    return (("", count),) if count else ()


def _too_large(task: TaskSize, needs: Part, gpus: int, machine: LocalMachine) -> str:
    """Why the machine can never give this, with the way out; empty where it can."""
    if task.nodes > 1:
        return f"each task needs {task.nodes} nodes, and the local site is one machine; use another site"
    if needs.processors > machine.processors:
        return (
            f"{needs.processors} processors were asked for, but the local site has {machine.processors}; "
            "lower `limits.max_proc`, or raise `processors` of the site"
        )
    if needs.memory > machine.memory:
        return (
            f"{format_size(needs.memory)} of memory were asked for, but this machine has "
            f"{format_size(machine.memory)}; use fewer processors, or less memory per task (`mem`)"
        )
    if gpus and task.gpu_type:
        return f"{task.gpu_type} GPUs were asked for, but the local site does not know types: leave it out"
    if gpus > len(machine.devices):
        return (
            f"{counted(gpus, 'GPU')} were asked for, but the local site has {len(machine.devices)}; "
            "use fewer processors, or set `gpus` of the site"
        )
    return ""


def check_site(site: SiteConfig) -> list[Finding]:
    """A local site may claim more processors than the machine has; no request may be larger than the site."""
    here = usable_processors()
    processors = site.processors or here
    if processors > here:
        found = [warning(f"processors is {processors}, but this machine gives {here}")]
    else:
        found = [ok(f"{processors} of this machine's {here} processors")]
    gpus = devices(site.gpus)
    if gpus:
        found.append(ok(f"{counted(len(gpus), 'GPU')}: {', '.join(gpus)}; tasks without `gpus` see none"))
    max_proc = site.limits.max_proc
    if max_proc is not None and max_proc > processors:
        found.append(
            error(f"limits.max_proc is {max_proc}, but the site has {processors} processors; lower it")
        )
    return found
