"""Design of the experiment: traces, loads, bags, and random draws."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.heuristics import HeuristicName
from adaptor.crafting.situation import SiteRules
from adaptor.donation.situation import DonationRules
from adaptor.model import Limits
from adaptor_experiments.derose.design import WORKLOADS, JobType, Workload, trace_files
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.jobs import Jobs

Strategy = Literal["transparent", "all-idle", "static", "adaptive", "mixed"]
"""`all-idle` is transparent allocation by the paper's own rule (`donation: choose: all`); `transparent` and
`mixed` use the nodes on which tasks are likely to finish."""
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
Donated = Literal["all-idle", "transparent"]
DONATED: tuple[Donated, ...] = get_args(Donated)
"""Strategies without a formal request: by the paper's own rule, and by ours."""
MACHINES = tuple(each for each in WORKLOADS if each.key != "ctc-sp2-338")
LOADS = (1.3, 1.0, 0.7)  # factors of the interarrival times: the higher, the emptier the machine
WATCHED = 30 * 86400  # seconds before the submission for which the idle periods of the site were seen
_HETEROGENEITY: Literal[2] = 2
"""Runtimes are uniform between half and three halves of the mean (De Rose, Table 2)."""


def prices(donated: float) -> Tariff:
    """Credits a processor-hour: 1 in formal requests, `donated` on donated nodes.

    They weigh what was simulated, in which no decision asks for them.
    """
    return Tariff(price_explicit=1.0, price_donated=donated)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All on which a result depends, except the trace, the load and the number of the sample."""

    seed: int = 1
    tasks: tuple[int, ...] = (100, 1000, 10_000)
    means: tuple[int, ...] = (100, 1000, 10_000)
    loads: tuple[float, ...] = LOADS
    max_pending: int = 4
    max_tr: int = 64_800
    initial_tr: float = 3600.0
    growth_factor: int = 2
    donation: DonationRules = DonationRules()

    @property
    def kinds(self) -> list[JobType]:
        return [JobType(tasks, mean, _HETEROGENEITY) for tasks in self.tasks for mean in self.means]

    def rules(self, strategy: Strategy) -> DonationRules:
        return msgspec.structs.replace(
            self.donation, choose="all" if strategy == "all-idle" else self.donation.choose
        )

    def terms(self, processors: int, heuristic: HeuristicName) -> GridTerms:
        limits = Limits(max_pending_requests=self.max_pending, max_proc=processors, max_tr=self.max_tr)
        return GridTerms(
            rules=SiteRules(limits=limits),
            heuristic=heuristic,
            workers=INSTANT_WORKERS,
            initial_tr=self.initial_tr,
            growth_factor=self.growth_factor,
        )


class Piece(msgspec.Struct, frozen=True):
    """One submission time on one trace under one load: what a process does at a time."""

    workload: Workload
    path: Path
    load: float
    sample: int
    settings: Settings

    @property
    def name(self) -> str:
        return f"{self.workload.key}-x{self.load:g}-{self.sample:04}"


def pieces(traces: Path, settings: Settings, samples: int) -> list[Piece]:
    """All of the experiment, those of all traces and loads in turn.

    Raises:
        ReplayError: a trace is not there.
    """
    paths = trace_files(MACHINES, traces)
    return [
        Piece(machine, path, load, sample, settings)
        for sample in range(samples)
        for machine, path in paths.items()
        for load in settings.loads
    ]


def submission(jobs: Jobs, piece: Piece) -> int:
    """A random second: the same place of the trace under each load.

    Late enough for the site to have been watched before, and within three quarters of the trace, so
    that local jobs go on to come while the bag runs.
    """
    draw = np.random.default_rng([piece.settings.seed, piece.sample, zlib.crc32(piece.path.name.encode())])
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    earliest = min(first + WATCHED, last)
    return int(earliest + draw.random() * max(0, first + 0.75 * (last - first) - earliest))
