"""Drawing without a window."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor_experiments.figures.canvas import Panels, common_legend, ratio_scale
from adaptor_simulation.files import ReplayError


def test_a_figure_of_plots_side_by_side(tmp_path: Path) -> None:
    panels = Panels(3)
    drawing = panels.save(tmp_path / "figures" / "some.svg", "A caption")
    assert (len(panels.plots), panels.left) == (3, panels.plots[::2])
    assert drawing.caption == "A caption"
    assert "<svg" in drawing.svg.read_text(encoding="utf-8")
    assert (tmp_path / "figures" / "some.png").read_bytes().startswith(b"\x89PNG")


def test_two_plots_stand_in_a_row_on_a_sheet_of_one_width() -> None:
    sizes = {plots: tuple(Panels(plots).sheet.get_size_inches()) for plots in (1, 2, 3, 5)}
    assert len({width for width, _ in sizes.values()}) == 1
    assert sizes[1] == sizes[2]
    assert sizes[2][1] < sizes[3][1] < sizes[5][1]


def test_a_legend_for_all_plots_names_each_line_once() -> None:
    plots = Panels(2).plots
    for axes in plots:
        axes.plot([1], label="both")
    plots[1].plot([1], label="one")
    assert common_legend(plots)[1] == ["both", "one"]


def test_ratios_have_plain_numbers_at_their_marks() -> None:
    axes = Panels(1).first
    axes.plot([0.3, 40])
    ratio_scale(axes)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["0.5", "1", "2", "5", "10", "20", "50"]


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReplayError, match=f"^{tmp_path / 'file' / 'some.svg'}: "):
        Panels(1).save(tmp_path / "file" / "some.svg", "A caption")
