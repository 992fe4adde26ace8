"""An experiment as data: its settings, its pieces, the run of one, and the page of all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from adaptor_experiments.figures import exhibits
from adaptor_experiments.figures.exhibits import Report
from adaptor_experiments.resumable import AnyPiece, resumed
from adaptor_experiments.tables import Row, Runs

Settings = TypeVar("Settings", bound=msgspec.Struct)


class Plan(msgspec.Struct, Generic[AnyPiece, Row, Settings], frozen=True):
    """What one call of an experiment runs, and how its page is made."""

    settings: Settings
    """All on which the rows of a piece depend, besides its name."""
    pieces: Sequence[AnyPiece]
    report: Callable[[Runs[Row], Settings, Path], Report]
    """Makes the page of the rows, and its figures in that folder."""


class Experiment(msgspec.Struct, Generic[AnyPiece, Row, Settings], frozen=True, kw_only=True):
    row: type[Row]
    run: Callable[[AnyPiece], list[Row]]
    """The rows of a piece."""
    plan: Callable[..., Plan[AnyPiece, Row, Settings]]
    """The plan for the options of a command, by name; options that are not given are left out."""
    printed: tuple[str, ...] = ("",)
    """Beginnings of the names of the tables that are printed."""
    failed: Callable[[Runs[Row]], bool] = lambda _: False
    """Whether the rows break a promise."""

    def finish(
        self, plan: Plan[AnyPiece, Row, Settings], output: Path, processes: int, done: Callable[[int], None]
    ) -> tuple[Runs[Row], Report]:
        """Run the pieces that have no file in the output folder, and write the page there.

        Args:
            done: gets the number of finished pieces.

        Raises:
            ReplayError: see `resumed`; or the page cannot be written.
        """
        rows = Runs(resumed(self.run, plan.pieces, self.row, output, plan.settings, processes, done))
        report = plan.report(rows, plan.settings, output)
        exhibits.write(report, rows, output)
        return rows, report


def planned(
    settings: type[Settings],
    pieces: Callable[[Settings], Sequence[AnyPiece]],
    report: Callable[[Runs[Row], Settings, Path], Report],
) -> Callable[..., Plan[AnyPiece, Row, Settings]]:
    """The `Experiment.plan` of an experiment whose options are its settings."""

    def plan(**options: Any) -> Plan[AnyPiece, Row, Settings]:
        chosen = settings(**options)
        return Plan(chosen, pieces(chosen), report)

    return plan
