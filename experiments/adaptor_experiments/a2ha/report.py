"""What the experiment leaves for its reader: all runs, tables, figures and a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from adaptor.figures import exhibits
from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.a2ha.comparison import comparison
from adaptor_experiments.a2ha.design import Row, Settings
from adaptor_experiments.a2ha.figures import draw_figures
from adaptor_experiments.a2ha.tables import conclusion, tables


def write_report(rows: Sequence[Row], settings: Settings, folder: Path) -> list[Exhibit]:
    """Write `runs.csv`, a CSV for each table, the figures and `report.html`.

    Raises:
        ReplayError: something cannot be written.
    """
    made = [comparison(rows, settings), *tables(rows)]
    setting = (
        f"{settings.orders} random orders of each bag, of seed {settings.seed}; means and standard deviations"
        " between the orders. The estimator is the one of adaptor.budget, asked as the daemon would ask it."
    )
    exhibits.write_runs(rows, folder / "runs.csv")
    report = exhibits.Report(
        title="How many hosts to buy (Silva et al. 2008; A²HA, 2011)",
        conclusion=conclusion(rows),
        drawings=draw_figures(rows, settings, folder / "figures"),
        setting=setting,
        exhibits=made,
    )
    exhibits.write_report(report, folder)
    return made
