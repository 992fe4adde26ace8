"""Each number of the papers' tables and figures beside ours, with the reason where the two differ."""

from __future__ import annotations

from collections.abc import Sequence

from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.a2ha import figure_numbers, table_numbers
from adaptor_experiments.a2ha.design import Row, Settings
from adaptor_experiments.a2ha.lines import NEAR


def comparison(rows: Sequence[Row], settings: Settings) -> Exhibit:
    lines = [
        *figure_numbers.of_2011(rows, settings),
        *table_numbers.of_table_1(rows),
        *table_numbers.of_table_2(rows),
        *figure_numbers.of_2008(rows),
    ]
    return Exhibit(
        name="comparison",
        title="Each number of the papers, ours, and the reason where they differ",
        headings=("where", "what", "paper", "ours", "reason"),
        rows=[line.cells for line in lines],
        remarks=(
            "Ours is the preset conservative (both ratios 0.5) as published where nothing else is said; means"
            " and standard deviations between the orders. A mean agrees that rounds to the paper's, or is"
            f" within {NEAR:.0%} of it. Each reason is held by the test behind it.",
            *(each.remark for each in dict.fromkeys(line.reason for line in lines) if each.text),
        ),
    )
