"""Compares a site's configuration with the cluster: one small check per question."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.crafting.fits import part_of, placeable
from adaptor.model import Limits, Request
from adaptor.reports import JobState
from adaptor.resources import TaskSize
from adaptor.units import counted, format_duration, format_size
from backends.base import PilotOrder, SchedulerError
from backends.ceilings import Ceilings
from backends.commands import Commands
from backends.findings import Finding, check_service, check_sizes, check_whole_nodes, error, ok, warning
from backends.slurm.accounts import SlurmTerms, minutes_of
from backends.slurm.limits import bounded_groups, find_association, groups_of, why_closed
from backends.slurm.nodes import MEBIBYTE, PartitionNodes, is_known
from backends.slurm.placing.exclusivity import KNOWN, NODE, NOTHING
from backends.slurm.placing.restriction import licenses_of, odd_arguments, restriction_of
from backends.slurm.placing.shape import as_queue, shape_of
from backends.slurm.questions import MOST_DISPUTED, Questions, SlurmReading
from backends.slurm.reasons import job_state
from backends.slurm.rows import Partition
from backends.slurm.submitting import where_options

OLDEST, NEWEST = "22.05", "26.05"
"""The releases of which answers are recorded in the tests; 24.11 is the third."""


def unknown_answers(
    settings: Mapping[str, str], seen: SlurmReading, partitions: Iterable[Partition]
) -> list[str]:
    """One sentence for each kind of answer, with its consequence."""
    release = unknown_release(settings)
    return [*([release] if release else []), *_states(seen), *_exclusivity(seen, partitions), *_records(seen)]


def unknown_release(settings: Mapping[str, str]) -> str:
    """One sentence where this Slurm is older or newer than all that were tried; else empty."""
    version = settings.get("SLURM_VERSION", "")
    release = ".".join(version.split(".")[:2])
    if not release or OLDEST <= release <= NEWEST:
        return ""
    side, last = ("older", OLDEST) if release < OLDEST else ("newer", NEWEST)
    return (
        f"Slurm {version} is {side} than {last}, the last release tried: run `adaptor site check --live`, "
        "and compare `adaptor site slots` with sinfo"
    )


def _states(seen: SlurmReading) -> Iterator[str]:
    for state in sorted(filter(_is_unknown, {row.state for row in seen.jobs})):
        yield (
            f"unknown job state {state[:40]!r} (squeue): what such jobs hold counts as held without an end, "
            "and what they wait for does not count"
        )
    for state in sorted({row.state for row in seen.nodes if not is_known(row)}):
        yield f"unknown node state {state[:40]!r} (sinfo): such nodes count as out of service"


def _is_unknown(state: str) -> bool:
    return job_state(state) is JobState.UNKNOWN


def _exclusivity(seen: SlurmReading, partitions: Iterable[Partition]) -> Iterator[str]:
    for word in sorted({detail.exclusive for detail in seen.job_details.found.values()} - KNOWN):
        yield f"unknown exclusivity {word[:40]!r} (scontrol show job): such jobs count as holding whole nodes"
    for word in sorted({partition.exclusive for partition in partitions} - KNOWN):
        yield (
            f"unknown exclusivity {word[:40]!r} (scontrol show partition): nodes of such partitions count as "
            "not shared with jobs of others"
        )


def _records(seen: SlurmReading) -> Iterator[str]:
    if seen.job_details.unread:
        yield (
            "unknown form of records (scontrol show job): such jobs count as having the same number of "
            "processors on each of their nodes, and their memory and GPUs as held without an end"
        )
    if len(seen.job_details.disputed) > MOST_DISPUTED:
        yield (
            f"more than {MOST_DISPUTED} jobs seem to have several records (scontrol show job): the name, "
            "comment or command of a job imitates them; the memory and GPUs of these jobs count as held "
            "without an end"
        )


_APART = {"USER": "users", "MCS": "labels (MCS)", "TOPO": "jobs of one segment of the network"}
"""Sharers between whom exclusivity is kept, by its word."""


def check_partition(nodes: PartitionNodes) -> Iterator[Finding]:
    """Check that jobs can start in the partition, and report how much they can use."""
    if nodes.available != "up":
        yield warning(f"partition {nodes.name} is {nodes.available} at the moment: no job starts")
    yield from check_service("partition", nodes)


def check_nodes(site: SiteConfig, nodes: PartitionNodes, partition: Partition | None) -> Iterator[Finding]:
    """Check that the sizes of nodes are as configured, and that the site asks for whole nodes if it must."""
    name = nodes.name
    kind = partition.exclusive if partition is not None else NOTHING
    if kind == NODE:
        yield from check_whole_nodes(site, "partition", nodes)
    elif kind != NOTHING:
        yield warning(
            f"partition {name} shares no nodes between {_APART.get(kind, f'jobs ({kind})')}: free slots "
            "count a node as taken as soon as a job runs on it"
        )
    if partition is not None and partition.shared_by > 1:
        yield warning(
            f"partition {name} puts up to {partition.shared_by} jobs on the same processors "
            f"(OverSubscribe=FORCE:{partition.shared_by}): tasks may run slower than "
            "elsewhere, and free slots count each processor once"
        )
    yield from check_sizes(site, nodes)


def check_where(site: SiteConfig, nodes: PartitionNodes) -> Iterator[Finding]:
    """Check that the site's keys leave nodes, and name its arguments that free slots do not know."""
    restriction = restriction_of(site)
    there = {node.name for node in nodes.machines}
    for key, names in (("exclude", restriction.excluded), ("nodelist", restriction.only or frozenset())):
        strange = sorted(names - there)
        if strange:
            yield warning(f"{key}: partition {nodes.name} has no {', '.join(strange[:5])}")
    left = len(nodes.ours)
    if left == 0:
        yield error(
            f"constraint, exclude, nodelist and gres leave none of the nodes of partition {nodes.name}; "
            f"they have {_features(nodes)}"
        )
    elif left < len(nodes.machines):
        yield ok(f"requests run on {left} of the {len(nodes.machines)} nodes of partition {nodes.name}")
    if restriction.constraint is not None and restriction.constraint.same:
        yield warning(
            "constraint: all nodes of a request must be alike, or the same number of each; free slots count "
            "them all, so a request may wait where a slot is shown"
        )
    if restriction.gres:
        yield warning(
            "gres: each request takes it on each of its nodes; free slots count the nodes that have it, in "
            "use or not. For GPUs, submit bags with --gpus instead"
        )
    for option, problem in odd_arguments(site.extra_args):
        yield warning(f"extra_args: {option}: {problem}")


def check_licenses(site: SiteConfig, questions: Questions) -> Iterator[Finding]:
    """Check that Slurm has the licences that each request takes."""
    wanted = licenses_of(site)
    there = questions.licenses() if wanted else {}
    for name, count in wanted.items():
        most = there[name].total if name in there else 0
        if most < count:
            known = ", ".join(f"{each}:{license.total}" for each, license in there.items()) or "none"
            yield error(f"licenses: {count} of {name} are asked for, and Slurm has {most} (it has {known})")
        else:
            yield ok(f"licenses: at most {most // count} requests at a time, by {name}:{count}")


def _features(nodes: PartitionNodes) -> str:
    features = sorted(frozenset().union(*nodes.features.values()))
    gpus = sorted(
        {f"gpu:{type}:{count}".replace("::", ":") for node in nodes.machines for type, count in node.gpus}
    )
    return f"features {', '.join(features) or 'none'}; gres {', '.join(gpus) or 'none'}"


def check_accounting(site: SiteConfig, terms: SlurmTerms, nodes: PartitionNodes) -> Iterator[Finding]:
    """Check that account and QOS exist for this user."""
    if not terms.associations:
        if site.account or site.qos:
            yield warning("there is no accounting for this user here: `account` and `qos` may be refused")
        return
    mine = find_association(terms.associations, site, nodes.name)
    if mine is None:
        there = ", ".join(dict.fromkeys(each.account for each in terms.associations))
        yield error(f"account {site.account} is not yours in partition {nodes.name}; yours are: {there}")
    elif site.qos is not None and site.qos not in mine.qos:
        yield error(f"qos {site.qos} may not be used with account {mine.account}; use: {', '.join(mine.qos)}")
    else:
        yield ok(f"account {mine.account}, QOS {site.qos or mine.default_qos or 'of the cluster'}")


def check_scheduler(settings: dict[str, str]) -> Iterator[Finding]:
    """Check that free slots can be seen and used."""
    if "backfill" not in settings.get("SchedulerType", "sched/backfill"):
        yield warning(
            f"Slurm does not backfill here ({settings['SchedulerType']}): no request starts in a free slot "
            "before planned jobs; `heuristic: static` serves as well"
        )
    if "jobs" in settings.get("PrivateData", "none"):
        yield warning(
            "Slurm hides the jobs of others here (PrivateData=jobs): when their processors become free and "
            "which jobs are planned is unknown"
        )


def check_record(questions: Questions) -> Iterator[Finding]:
    """Check that ended jobs are remembered for longer than a few minutes."""
    try:
        questions.accounting_since("now-1hours")
    except SchedulerError as problem:
        yield warning(
            f"sacct does not answer ({problem}): if no daemon runs for longer than MinJobAge, pilots that "
            "end meanwhile count as vanished"
        )
    else:
        yield ok("sacct answers")


def check_shared(
    site: SiteConfig, terms: SlurmTerms, nodes: PartitionNodes, known: Ceilings
) -> Iterator[Finding]:
    """Report what account and QOS let jobs hold together, what is left of it, and the unit of requests."""
    partition = terms.partitions[nodes.name]
    groups = groups_of(terms, site, partition)
    if reason := why_closed(terms, site, partition):
        yield error(reason)
    for group in bounded_groups(terms, site, nodes):
        yield ok(f"at most {group.most:g} processors at the same time ({group.source})")
    for each in groups:
        for name, minutes in each.minutes.items():
            if not math.isinf(minutes.limit):
                what, key = minutes_of(name)
                of = f"{minutes.used:g} of {minutes.limit:g}"
                yield ok(f"{each.source}: {of} {what} are used ({key})")
    yield from _of_one_request(nodes, partition, known)


def _of_one_request(nodes: PartitionNodes, partition: Partition, known: Ceilings) -> Iterator[Finding]:
    """The unit of requests, and what each has at least and at most."""
    if nodes.processor_step > 1:
        yield ok(f"Slurm gives {nodes.processor_step} processors at once: requests are multiples of them")
    if nodes.most_memory is not None:
        most = format_size(nodes.most_memory)
        yield ok(
            f"a task that needs more than {most} gets a further processor for each {most} (MaxMemPerCPU)"
        )
    if known.parts > 1:
        of_partition = partition.min_nodes == known.parts
        source = f"MinNodes of partition {nodes.name}" if of_partition else "MinTRES=node of its QOS"
        yield ok(f"each request gets {known.parts} nodes at least ({source})")
    if known.least.value > 1:
        yield ok(f"each request has {known.least.value:g} processors at least ({known.least.source})")
    if known.least_memory.value:
        least = format_size(known.least_memory.value)
        yield ok(f"each request has {least} of memory at least ({known.least_memory.source})")
    if known.least_gpus.value:
        gpus = counted(int(known.least_gpus.value), "GPU")
        yield warning(
            f"each request must have {gpus} at least ({known.least_gpus.source}): submit with --gpus"
        )
    if not math.isinf(known.gpus.value):
        yield ok(f"a request has {counted(int(known.gpus.value), 'GPU')} at most ({known.gpus.source})")
    if not math.isinf(known.memory.value):
        yield ok(f"a request has {format_size(known.memory.value)} of memory at most ({known.memory.source})")
    if not math.isinf(known.work_left.value):
        minutes = f"{known.work_left.value / 60:g} processor minutes"
        yield ok(
            f"requests may take {minutes} together, in addition to what runs now ({known.work_left.source})"
        )


def check_submit(
    commands: Commands, site: SiteConfig, nodes: PartitionNodes, limits: Limits
) -> Iterator[Finding]:
    """Check that Slurm would take the largest request of the configuration, of each kind of task. Submits
    nothing.

    Args:
        limits: the limits where the configuration sets none.
    """
    tr = int(site.limits.max_tr or limits.max_tr)
    taken, refused = list[str](), False
    for kind, task in _kinds(nodes):
        most = min(site.limits.max_proc or limits.max_proc, placeable(as_queue(nodes), task))
        unit = nodes.usual_size if site.whole_nodes else part_of(as_queue(nodes), task)[0].processors
        request = Request(max(1, most // unit) * unit, tr)
        words = f"{counted(request.p, 'processor')} for {format_duration(tr)}{kind}"
        try:
            answer = commands.run("sbatch", *_trial(site, nodes, request, task))
        except SchedulerError as problem:
            yield error(str(problem))
            return
        if answer.status:
            refused = True
            yield error(f"Slurm would refuse {words}: {answer.complaint}")
            continue
        taken.append(words)
        given = _GIVEN.search(answer.errors + answer.output)
        expected = request.p * max(nodes.threads.values(), default=1)
        if given is not None and int(given[1]) > expected and not site.whole_nodes:
            yield warning(
                f"Slurm gives {given[1]} processors for a request of {request.p}: an option, a default or a "
                "submit plugin takes more; if that is one thread of each core, write "
                "`extra_args: [--hint=nomultithread]`"
            )
    if taken and not refused:
        yield ok(f"Slurm would accept {'; '.join(taken)} (sbatch --test-only)")


_GIVEN = re.compile(r" using ([0-9]{1,9}) processors ")


def _kinds(nodes: PartitionNodes) -> Iterator[tuple[str, TaskSize]]:
    """Tasks of one processor, of all memory of one, and of one GPU of each type, with words."""
    yield "", TaskSize()
    ours = [node for node in nodes.machines if node.ours and node.processors]
    shares = [node.memory // node.processors for node in ours if node.memory]
    if shares and nodes.memory_counted:
        memory = max(1, min(*shares, nodes.most_memory or shares[0]) // MEBIBYTE) * MEBIBYTE
        yield f" with {format_size(memory)} for each processor", TaskSize(memory=memory)
    for type in sorted({type for node in ours for type, _ in node.gpus}):
        kind = f"{type} GPU".strip()
        yield f" with one {kind} for each task", TaskSize(gpus=1, gpu_type=type)


def _trial(site: SiteConfig, nodes: PartitionNodes, request: Request, task: TaskSize) -> list[str]:
    """The arguments of sbatch that try a request."""
    order = PilotOrder(tag="", request=request, task=task, directory=Path(), worker=(), environment={})
    per_node = (site.processors_per_node or nodes.usual_size) if site.whole_nodes else None
    arguments = ["--test-only", f"--time={math.ceil(request.tr / 60)}", "--wrap=true"]
    arguments += shape_of(order, nodes, per_node=per_node).options()
    for key, value in (("partition", site.partition), ("account", site.account), ("qos", site.qos)):
        arguments += [f"--{key}={value}"] if value is not None else []
    return [*arguments, *where_options(site, (node.name for node in nodes.machines)), *site.extra_args]
