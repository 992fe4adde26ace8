"""The simulated cluster that a bag of `adaptor replay bag` meets."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adaptor.errors import UsageError
from adaptor.simulation.cluster import Cluster, Policy, cluster_of_processors
from adaptor.simulation.errors import TraceError
from adaptor.simulation.machine import Machine, lay_out, parse_machine
from adaptor.simulation.trace_run import load_jobs
from adaptor.simulation.traces.repairs import Choices


class NodesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """As they were given, and found to go together."""

    nodes: str | None
    """None: the cluster counts processors."""
    memory: str | None
    chunk: int | None
    """Processors that a job has on one node; None: whole nodes."""
    profiles: tuple[bool, ...]
    """By replay, whether the planner sees the nodes; empty: it was not said."""


class BagCluster(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A cluster at the start of its trace."""

    name: str
    """Of the trace."""
    cluster: Cluster
    left_out: int = 0
    """Jobs that the nodes never hold."""

    @property
    def nodes(self) -> bool:
        """Whether jobs hold parts of nodes; else processors are all that is counted."""
        return self.cluster.machine.shown


def load_cluster(
    trace: Path,
    policy: Policy,
    processors: int | None,
    options: NodesOptions,
    choices: Choices,
    *,
    lenient: bool,
) -> BagCluster:
    """Raises TraceError, or UsageError where the options say no machine."""
    machine = _machine(options)
    size = machine.processors if machine else processors
    loaded = load_jobs(trace, processors=size, choices=choices, lenient=lenient)
    if machine is None:
        cluster = cluster_of_processors(loaded.jobs, loaded.processors, policy)
        return BagCluster(name=loaded.name, cluster=cluster)
    laid_out = lay_out(loaded.jobs, machine, options.chunk)
    if laid_out.left_out and choices.larger == "refuse":
        raise TraceError(f"{loaded.name}: the nodes never hold {laid_out.left_out:,} of its jobs")
    return BagCluster(name=loaded.name, cluster=Cluster(laid_out, policy), left_out=laid_out.left_out)


def _machine(options: NodesOptions) -> Machine | None:
    try:
        return parse_machine(options.nodes, options.memory) if options.nodes is not None else None
    except ValueError as error:
        raise UsageError(f"--nodes: {error}") from error
