"""What a new bag needs: a node that holds its tasks, and a budget that holds a request. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.credits import format_credits
from adaptor.budget.accounting.statements import Statements
from adaptor.budget.accounting.tariffs import Allocation
from adaptor.crafting.placing import why_no_node_holds
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.decisions.requests import smallest
from adaptor.errors import UsageError
from adaptor.model import QueueState, Request
from adaptor.scheduling.state import SiteTerms
from adaptor.units import format_duration

Rules = Mapping[str, SiteRules]
"""By site."""


def beyond_work(spec: BagSpec, sites: Rules, ledger: Statements) -> int:
    """What requests for the slots of a quote reserve beyond the work that it counts: pad and overrun.

    Millionths of a credit; most of it is given back when they end.
    """
    return sum(
        ledger.tariff(name).reservation("explicit", spec.slots.get(name, 0) * spec.cpus, math.ceil(rules.pad))
        for name, rules in sites.items()
    )


def check_can_run(spec: BagSpec, queues: Mapping[str, QueueState | None]) -> None:
    """Raises UsageError: no node of any site holds a task of the bag.

    `queues`: of the sites at which it may run, as last seen; None: not seen yet, and all is possible.
    """
    reasons = {
        name: queue and why_no_node_holds(queue, spec.cpus, spec.memory) for name, queue in queues.items()
    }
    if all(reasons.values()):
        told = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        raise UsageError(f"no node can run these tasks: {told}")


def check_holds_a_request(
    spec: BagSpec, amount: int, sites: Rules, terms: Mapping[str, SiteTerms], ledger: Statements
) -> None:
    """Raises UsageError: the amount (millionths of a credit) is less than the smallest request may cost."""
    needed, site, request = min(_first_requests(spec, sites, terms, ledger))
    if amount < needed:
        raise UsageError(
            f"a budget of {format_credits(amount)} credits holds no request: the smallest, {request.p} × "
            f"{format_duration(request.tr)} at {site}, may cost {format_credits(needed)} (a task is taken to "
            "need initial_tr before any has finished, the end of a pilot may be late, and begun charging "
            "units count whole)"
        )


def _first_requests(
    spec: BagSpec, sites: Rules, terms: Mapping[str, SiteTerms], ledger: Statements
) -> Iterable[tuple[int, str, Request]]:
    """By site: the least that the first request of a bag costs."""
    kind: Allocation = "donated" if spec.allocation == "transparent" else "explicit"
    for name, rules in sites.items():
        runtime = min(spec.runtimes.get(name, terms[name].initial_tr), terms[name].longest)
        demand = Demand(processors_per_task=spec.cpus, runtime=runtime, shortest=runtime)
        request = smallest(RequestShape.for_demand(rules, None, demand), demand)
        yield ledger.tariff(name).reservation(kind, request.p, request.tr), name, request
