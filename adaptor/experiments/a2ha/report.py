"""What the experiment leaves for its reader: all runs, tables, figures and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from adaptor.experiments.a2ha.design import Row, Settings
from adaptor.experiments.a2ha.figures import draw_figures
from adaptor.experiments.a2ha.tables import tables
from adaptor.figures.exhibits import Exhibit, write_exhibits, write_runs

_TITLE = "How many hosts to buy (Silva et al. 2008; A²HA, 2011)"


def write_report(rows: Sequence[Row], settings: Settings, folder: Path) -> list[Exhibit]:
    """Write `runs.csv`, a CSV for each table, the figures and `report.html`.

    Raises:
        ReplayError: something cannot be written.
    """
    made = tables(rows)
    opening = (
        f"{settings.orders} random orders of each bag, seed {settings.seed}; means and standard deviations"
        " between the orders. The estimator is the one of adaptor.budget, asked as the daemon would ask it."
    )
    write_runs(rows, folder / "runs.csv")
    write_exhibits(_TITLE, opening, made, draw_figures(rows, settings, folder / "figures"), folder)
    return made
