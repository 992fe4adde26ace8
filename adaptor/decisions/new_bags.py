"""Conditions for a new bag: a node that holds its tasks, and a budget that holds a request. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.credits import format_credits
from adaptor.budget.accounting.statements import Statements
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.fits import RequestShape, each_kind, why_no_node_holds
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.decisions.first_estimates import least_time
from adaptor.decisions.requests import paid_in_parts, per_processor, smallest
from adaptor.defaults import HOW_TO_ADD
from adaptor.errors import UsageError
from adaptor.model import QueueState, Request
from adaptor.resources import TaskSize
from adaptor.runtimes.known import EarlierTasks
from adaptor.scheduling.bag import assumed_at
from adaptor.scheduling.state import SiteTerms
from adaptor.units import format_duration

Rules = Mapping[str, SiteRules]  # by site


def _tariff(ledger: Statements, site: str, rules: SiteRules, spec: BagSpec) -> Tariff:
    return ledger.tariff(site).of_pilots(per_processor(rules, None, spec.task))


def check_sites(names: Iterable[str], sites: Collection[str]) -> None:
    """Raises UsageError: one of these is no site of the configuration."""
    for name in names:
        if name not in sites:
            known = f"there is no site {name!r}; the configuration has: {', '.join(sites)}"
            raise UsageError(known + HOW_TO_ADD.get(name, ""))


def check_can_run(spec: BagSpec, queues: Mapping[str, QueueState | None]) -> None:
    """Raises UsageError: no node of any site holds a task of the bag, or its size contradicts itself.

    `queues`: of the sites at which it may run, as last seen; None: not seen yet, and all is possible.
    """
    if spec.task.nodes > 1 and spec.task.tasks_per_gpu > 1:
        raise UsageError(
            "a task on several nodes has them wholly: --gpus must be a whole number with --nodes"
        )
    if why := why_nowhere(spec.task, queues):
        raise UsageError(f"no node can run these tasks: {why}")


def why_nowhere(size: TaskSize, queues: Mapping[str, QueueState | None]) -> str:
    """Why no node of any of these sites holds a task of this size; empty: one may."""
    reasons = {name: queue and why_no_node_holds(queue, size) for name, queue in queues.items()}
    if not all(reasons.values()):
        return ""
    return "; ".join(f"{name}: {why}" for name, why in reasons.items())


def impossible_tasks(
    sizes: Mapping[int, TaskSize], queues: Mapping[str, QueueState | None], most: int
) -> dict[int, str]:
    """Reasons for tasks that can never run, by task. `sizes`: by task; `most`: processors of the largest
    request."""
    kinds = {name: queue and each_kind(queue) for name, queue in queues.items()}
    known: dict[TaskSize, str] = {}
    for size in set(sizes.values()):
        if why := why_nowhere(size, kinds if size.nodes == 1 else queues):
            known[size] = f"no node can run it: {why}"
        elif size.total_processors > most:
            known[size] = f"tasks of {size.total_processors} cpus fit into no request: max_proc is {most}"
    return {task: known[size] for task, size in sizes.items() if size in known}


def check_times(spec: BagSpec, longest: Mapping[str, float]) -> None:
    """Raises UsageError: a task would be ended before, or signalled from the start of, what it has to do.

    With a time-out, as that of a batch script, the time may be a limit, and is not compared.

    Args:
        longest: by site, the longest task that one request can hold, seconds.
    """
    limit = spec.timeout.seconds if spec.timeout is not None else None
    if limit is not None and spec.time is not None and limit < spec.time:
        raise UsageError(
            f"--timeout {spec.timeout} would end tasks that take the {format_duration(spec.time)} of --time: "
            "write a longer one"
        )
    most = max(longest.values(), default=math.inf)
    if spec.time is not None and spec.time > most and spec.timeout is None and not spec.requeue_on:
        raise UsageError(
            f"--time {format_duration(spec.time)}: a task has at most {format_duration(most)} (max_tr less "
            "the pad) until its pilot ends: write less, or --requeue-on if it saves its state and goes on"
        )
    for site, seconds in longest.items():
        if spec.signal is not None and spec.signal.seconds >= seconds:
            raise UsageError(
                f"--signal {spec.signal}: a task at {site} has at most {format_duration(seconds)} (max_tr "
                "less the pad) until its pilot ends: write a shorter time"
            )


def check_holds_a_request(
    spec: BagSpec,
    amount: int,
    sites: Rules,
    terms: Mapping[str, SiteTerms],
    ledger: Statements,
    earlier: Mapping[str, EarlierTasks],
) -> None:
    """Raises UsageError: the amount (millionths of a credit) is less than the smallest request may cost.

    While nothing is known of its tasks, they are taken to need as little as `estimate_by_budgets` allows.

    Args:
        earlier: by site, what is known of earlier bags of the same kinds.
    """
    assumed = {
        name: min(
            assumed_at(spec, earlier, name) or min(terms[name].initial_tr, least_time(rules)),
            terms[name].longest,
        )
        for name, rules in sites.items()
    }
    needed, site, request = min(_first_requests(spec, sites, assumed, ledger))
    if amount < needed:
        known_as = "its --time" if spec.time is not None else "initial_tr"
        if site in earlier and spec.time is None:
            known_as = f"what earlier tasks of {earlier[site].kind} took"
        elif spec.time is None and assumed[site] < terms[site].initial_tr:
            known_as = f"at least {format_duration(assumed[site])}"
        late = "" if paid_in_parts(spec) else "the end of a pilot may be late, "
        raise UsageError(
            f"a budget of {format_credits(amount)} credits holds no request: the smallest, {request.p} × "
            f"{format_duration(request.tr)} at {site}, may cost {format_credits(needed)} (a task is taken to "
            f"need {known_as} before any has finished, {late}and begun charging units count whole)"
        )


def _first_requests(
    spec: BagSpec, sites: Rules, assumed: Mapping[str, float], ledger: Statements
) -> Iterable[tuple[int, str, Request]]:
    """Least cost of the first request of a bag by site. `assumed`: seconds that a task is assumed to need."""
    for name, rules in sites.items():
        demand = Demand(task=spec.task, runtime=assumed[name], shortest=assumed[name])
        request = smallest(RequestShape.for_demand(rules, None, demand), demand)
        tariff = _tariff(ledger, name, rules, spec)
        if spec.price_kind == "explicit" and paid_in_parts(spec):
            tariff = tariff.of_parts
        yield tariff.reservation(spec.price_kind, request.p, request.tr), name, request
