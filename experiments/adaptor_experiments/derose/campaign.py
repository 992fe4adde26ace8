"""The samples of the experiment, each of which one process runs at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from adaptor.simulation.jobs import Jobs
from adaptor_experiments.derose.design import Settings, Workload, trace_files
from adaptor_experiments.derose.sample import Outcome, load, run_sample


class Piece(msgspec.Struct, frozen=True):
    """One sample of one trace."""

    workload: Workload
    path: Path
    settings: Settings
    sample: int

    @property
    def name(self) -> str:
        file = f"-{self.workload.content:08x}" if self.workload.own else ""
        return f"{self.workload.key}{file}-{self.sample:04}"


def pieces(workloads: Sequence[Workload], traces: Path, settings: Settings, samples: int) -> list[Piece]:
    """All samples, those of all traces in turn.

    Raises:
        ReplayError: a trace is not there.
    """
    paths = trace_files(workloads, traces)
    return [
        Piece(workload, path, settings, sample)
        for sample in range(samples)
        for workload, path in paths.items()
    ]


def run_piece(piece: Piece) -> list[Outcome]:
    """Raises TraceError: the trace is at fault."""
    return run_sample(piece.workload, jobs_of(piece), piece.settings, piece.sample)


def jobs_of(piece: Piece) -> Jobs:
    """The local jobs as they come. Raises TraceError: the trace is at fault."""
    return load(piece.path, piece.workload.processors).stretched(piece.settings.stretch)
