"""The three limits of De Rose §4.3 as Slurm sets them: partition, association and QOS."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.model import FROM_NOTHING, UNLIMITED, Bound
from backends.base import SchedulerError
from backends.ceilings import Ceilings
from backends.slurm.accounts import Group, GroupLimits, SlurmTerms, Used, below, concerning, used_up
from backends.slurm.nodes import MEBIBYTE, Look, PartitionNodes, memory_terms, node_terms
from backends.slurm.parse import Association, QosAllowance
from backends.slurm.placing.gres import NodeDetail
from backends.slurm.placing.restriction import restriction_of
from backends.slurm.rows import Partition, find_partition


def ceilings(terms: SlurmTerms, site: SiteConfig, nodes: PartitionNodes) -> Ceilings:
    """Bounds on the number and the size of the site's requests. Raises SchedulerError: no such partition."""
    partition = terms.partitions.get(nodes.name)
    if partition is None:
        raise SchedulerError(f"Slurm has no partition {nodes.name}")
    allowances, groups = _allowances(terms, site, partition), groups_of(terms, site, partition)
    largest = max((node.processors for node in nodes.machines if node.ours), default=nodes.usual_size)
    size = min(partition.processors // max(1, partition.nodes) or largest, largest)
    name = f"partition {partition.name}"
    bounds = [Bound(partition.processors, f"all processors of {name}")]
    if partition.max_nodes is not None:
        bounds.append(Bound(partition.max_nodes * size, f"MaxNodes of {name}"))
    per_node = [Bound(each.value * size, each.source) for each in _bounds(allowances, "nodes")]
    shared = [Bound(group.most, group.source) for group in bounded_groups(terms, site, nodes)]
    left = min(_run_minutes(groups, partition.billing), default=UNLIMITED)
    minutes = [*_minutes(groups, partition.billing), *_bounds(allowances, "minutes")]
    of_nodes = _of_own_nodes(nodes, partition)
    return Ceilings(
        requests=min(_requests(allowances, groups), default=UNLIMITED),
        processors=min([*bounds, *_bounds(allowances, "processors"), *per_node, *of_nodes, *shared]),
        seconds=min([_partition_time(partition), *_bounds(allowances, "seconds"), *_wall(groups)]),
        whole=min([partition.processors, *(int(bound.value) for bound in of_nodes)]),
        node=largest,
        least=max([Bound(1, "no limit"), *(Bound(each.least, each.source) for each in allowances)]),
        parts=max(partition.min_nodes, least_nodes(terms, site, partition)),
        work=min([Bound(each.value * 60, each.source) for each in minutes], default=UNLIMITED),
        work_left=Bound(left.value * 60, left.source),
        memory=memory_bound(terms, site, partition),
        gpus=min(
            [
                *_of_groups(((each.gpus.limit, each) for each in groups), "gres/gpu"),
                *_bounds(allowances, "gpus"),
            ],
            default=UNLIMITED,
        ),
        least_memory=_most(allowances, "least_memory", "MinTRES=mem"),
        least_gpus=_most(allowances, "least_gpus", "MinTRES=gres/gpu"),
    )


def _node_memory(terms: SlurmTerms, site: SiteConfig, partition: Partition, known: int | None) -> int | None:
    """Bytes of a node that a job may have, by the partition (`known`), the account and the QOS; None: all."""
    allowances, groups = _allowances(terms, site, partition), groups_of(terms, site, partition)
    bounds = [each.node_memory for each in allowances] + [MEBIBYTE * each.job_memory for each in groups]
    least = min(bounds, default=math.inf)
    return known if math.isinf(least) else int(min(least, known or math.inf))


def least_nodes(terms: SlurmTerms, site: SiteConfig, partition: Partition) -> int:
    """Nodes of each request at least, by the account and the QOS (MinTRES)."""
    return max((each.least_nodes for each in _allowances(terms, site, partition)), default=1)


def memory_bound(terms: SlurmTerms, site: SiteConfig, partition: Partition) -> Bound:
    """Bytes that the account and the QOS of a site allow a job, or all jobs of a group together."""
    groups = groups_of(terms, site, partition)
    found = _of_groups(((MEBIBYTE * each.memory.limit, each) for each in groups), "mem")
    found += _bounds(_allowances(terms, site, partition), "memory")
    return min(found, default=UNLIMITED)


def _of_groups(limits: Iterable[tuple[float, GroupLimits]], key: str) -> list[Bound]:
    """Bounds on what all jobs of a group may have together, and so on each job; only where there is a
    limit."""
    return [Bound(most, f"GrpTRES={key} of {each.source}") for most, each in limits if not math.isinf(most)]


def _most(allowances: Iterable[QosAllowance], kind: str, key: str) -> Bound:
    """Least amount that a request must have."""
    found = [Bound(getattr(each, kind), f"{key} of {each.source}") for each in allowances]
    return max([bound for bound in found if bound.value > 0], default=FROM_NOTHING)


def node_bound(terms: SlurmTerms, site: SiteConfig, partition: Partition) -> float:
    """Processors that the account and the QOS of a site allow a job on one node."""
    allowances, groups = _allowances(terms, site, partition), groups_of(terms, site, partition)
    bounds = [each.node_processors for each in allowances] + [each.job_processors for each in groups]
    return min(bounds, default=math.inf)


def look_for(
    site: SiteConfig, settings: Mapping[str, str], terms: SlurmTerms, details: Mapping[str, NodeDetail]
) -> Look:
    """Facts about the nodes for the requests of a site."""
    partition = find_partition(terms.partitions.values(), site.partition)
    bound = math.inf if partition is None else node_bound(terms, site, partition)
    memory = memory_terms(settings, terms.partitions, site.partition)
    most = UNLIMITED if partition is None else memory_bound(terms, site, partition)
    if most.value < math.inf:
        memory = msgspec.structs.replace(memory, request=int(most.value))
    of_node = node_terms(settings, partition, site, bound)
    if partition is not None:
        of_node = msgspec.structs.replace(
            of_node,
            least_nodes=least_nodes(terms, site, partition),
            job_memory=_node_memory(terms, site, partition, of_node.job_memory),
        )
    return Look(
        details=details,
        restriction=restriction_of(site),
        memory=memory,
        terms=of_node,
    )


def groups_of(terms: SlurmTerms, site: SiteConfig, partition: Partition) -> list[GroupLimits]:
    """The groups whose limits hold for requests of the site."""
    mine = find_association(terms.associations, site, partition.name)
    account = site.account or (mine.account if mine else "")
    return concerning(terms.groups, account, terms.user, partition.name, _qos_names(site, mine, partition))


def why_closed(terms: SlurmTerms, site: SiteConfig, partition: Partition) -> str:
    """Why no request of the site starts in a partition at present; empty: some do."""
    return _why_kept_out(terms, site, partition) or used_up(groups_of(terms, site, partition))


def _why_kept_out(terms: SlurmTerms, site: SiteConfig, partition: Partition) -> str:
    """A sentence on an account or a QOS whose jobs the partition does not take; empty: none."""
    mine, name = find_association(terms.associations, site, partition.name), f"partition {partition.name}"
    if mine is None:
        return ""
    account, qos = mine.account, site.qos or mine.default_qos or "normal"
    if partition.only_qos and qos not in partition.only_qos:
        there = ", ".join(sorted(partition.only_qos))
        return f"{name} takes no jobs of QOS {qos} (AllowQos={there}): set `qos` of this site to one of these"
    if qos in partition.no_qos:
        return f"{name} takes no jobs of QOS {qos} (DenyQos): set `qos` of this site to another"
    known = [each for each in partition.only_accounts if account in below(terms.groups, each)]
    if partition.only_accounts and not known:
        there = ", ".join(sorted(partition.only_accounts))
        return (
            f"{name} takes no jobs of account {account} (AllowAccounts={there}): set `account` of this site "
            "to one of these"
        )
    if account in partition.no_accounts:
        return f"{name} takes no jobs of account {account} (DenyAccounts): set `account` to another"
    return ""


def bounded_groups(terms: SlurmTerms, site: SiteConfig, nodes: PartitionNodes) -> list[Group]:
    """The groups of jobs, ours among them, with a bound on the processors that they hold together."""
    partition = terms.partitions[nodes.name]
    mine = find_association(terms.associations, site, partition.name)
    account = site.account or (mine.account if mine else "")
    size = max((node.processors for node in nodes.machines if node.ours), default=1)
    found = []
    for each in groups_of(terms, site, partition):
        billed = each.billing.limit / partition.billing if partition.billing else math.inf
        most, key = min(
            (each.processors.limit, "GrpTRES=cpu"),
            (each.nodes.limit * size, "GrpTRES=node"),
            (billed, "GrpTRES=billing"),
        )
        if math.isinf(most):
            continue
        accounts = frozenset({each.account}) if each.user else below(terms.groups, each.account)
        found.append(
            Group(
                most=most,
                source=f"{key} of {each.source}",
                accounts=None if each.qos else accounts,
                user=each.user,
                used=each.processors.used if each.qos else None,
            )
        )
    for name in _qos_names(site, mine, partition):
        qos = terms.qos.get(name)
        if qos is not None and not math.isinf(qos.user_processors):
            source = f"MaxTRESPerUser of {qos.source}"
            found.append(Group(most=qos.user_processors, source=source, user=terms.user))
        if qos is not None and not math.isinf(qos.account_processors):
            source = f"MaxTRESPerAccount of {qos.source}"
            found.append(Group(most=qos.account_processors, source=source, accounts=frozenset({account})))
    return found


def _requests(allowances: Iterable[QosAllowance], groups: Iterable[GroupLimits]) -> list[Bound]:
    """Jobs in the system: those beyond what may run together would wait for the others to end."""
    kept = list(allowances)
    found = [
        bound
        for kind in ("submitted", "account_submitted", "jobs", "account_jobs")
        for bound in _bounds(kept, kind)
    ]
    for group in groups:
        found += [Bound(each.limit, group.source) for each in (group.jobs, group.submitted)]
    return [bound for bound in found if not math.isinf(bound.value)]


def _minutes(groups: Iterable[GroupLimits], billing: float) -> Iterator[Bound]:
    """Processors times minutes that one more job may take. `billing`: of each processor."""
    for group in groups:
        for name, size in (("cpu", 1.0), ("billing", billing)):
            total, run = (each.get(name, Used()) for each in (group.minutes, group.run_minutes))
            if size:
                yield Bound(_left(total, run.used) / size, f"GrpTRESMins={name} of {group.source}")
                yield Bound(run.limit / size, f"GrpTRESRunMins={name} of {group.source}")
        yield Bound(group.job_minutes, f"MaxTRESMins of {group.source}")


def _run_minutes(groups: Iterable[GroupLimits], billing: float) -> Iterator[Bound]:
    """Processors times minutes that all jobs which start now may take, in addition to those that run."""
    for group in groups:
        for name, size in (("cpu", 1.0), ("billing", billing)):
            total, run = (each.get(name, Used()) for each in (group.minutes, group.run_minutes))
            if size and not math.isinf(run.limit):
                yield Bound(run.left / size, f"GrpTRESRunMins={name} of {group.source}")
            if size and not math.isinf(total.limit):
                yield Bound(max(0.0, total.left - run.used) / size, f"GrpTRESMins={name} of {group.source}")


def _left(total: Used, set_aside: float = 0.0) -> float:
    """Amount that is left; with `safe`, the amount that running jobs may still take is set aside."""
    sure = total.left - set_aside
    return sure if sure >= 1 else total.left


def _wall(groups: Iterable[GroupLimits]) -> list[Bound]:
    found = ((group.minutes.get("wall", Used()), group.source) for group in groups)
    return [Bound(60 * _left(wall), f"GrpWall of {source}") for wall, source in found if wall.left >= 1]


def _of_own_nodes(nodes: PartitionNodes, partition: Partition) -> list[Bound]:
    """Bounds by nodes that the site's keys exclude, or by what a job may have of a node; empty: no such
    bound."""
    processors = sum(node.processors for node in nodes.machines if node.ours)
    if all(node.ours for node in nodes.machines):
        bounded = nodes.threads or any(node.most is not None for node in nodes.listed.values())
        if not bounded or processors >= partition.processors:
            return []
        return [Bound(processors, f"what requests may have of the nodes of partition {nodes.name}")]
    return [Bound(processors, f"the nodes of partition {nodes.name} on which this site's requests run")]


def _partition_time(partition: Partition) -> Bound:
    if math.isinf(partition.max_time):
        return Bound(math.inf, "no limit")
    return Bound(partition.max_time, f"MaxTime of partition {partition.name}")


def _bounds(allowances: Iterable[QosAllowance], kind: str) -> list[Bound]:
    """Bounds of this kind in the allowances, without infinite ones."""
    found = [Bound(getattr(each, kind), each.source) for each in allowances]
    return [bound for bound in found if not math.isinf(bound.value)]


def _allowances(terms: SlurmTerms, site: SiteConfig, partition: Partition) -> list[QosAllowance]:
    """Allowances of the association and of the QOS under which the site's requests run."""
    mine = find_association(terms.associations, site, partition.name)
    found = [terms.qos[name] for name in _qos_names(site, mine, partition) if name in terms.qos]
    known = [mine.allowance, *found] if mine else found
    return [_in_processors(each, partition.billing) for each in known]


def _in_processors(known: QosAllowance, billing: float) -> QosAllowance:
    """The allowance with its billing in processors. `billing`: of each processor; 0: not known."""
    if not billing:
        return known
    most = math.inf if math.isinf(known.billing) else max(1, known.billing // billing)
    return msgspec.structs.replace(
        known,
        processors=min(known.processors, most),
        least=max(known.least, math.ceil(known.least_billing / billing)),
    )


def _qos_names(site: SiteConfig, mine: Association | None, partition: Partition) -> list[str]:
    names = {site.qos or (mine.default_qos if mine else "") or "normal", partition.qos}
    return sorted(filter(None, names))


def find_association(
    associations: Iterable[Association], site: SiteConfig, partition: str
) -> Association | None:
    """The association of the site's account, one for this very partition before one for all."""
    fitting = [
        each
        for each in associations
        if each.partition in ("", partition) and site.account in (None, each.account)
    ]
    return max(fitting, key=lambda each: each.partition == partition, default=None)
