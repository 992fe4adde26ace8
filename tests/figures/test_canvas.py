"""Drawing without a window."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from adaptor.errors import AdaptorError
from adaptor.figures.canvas import save, sheet
from adaptor.simulation.errors import ReplayError


def test_a_figure_of_plots_side_by_side(tmp_path: Path) -> None:
    seen = []
    drawing = save(tmp_path / "figures" / "some.svg", "A caption", 3, seen.extend)
    assert len(seen) == 3
    assert drawing.caption == "A caption"
    assert "<svg" in drawing.svg.read_text(encoding="utf-8")
    assert (tmp_path / "figures" / "some.png").read_bytes().startswith(b"\x89PNG")


def test_a_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReplayError, match=f"^{tmp_path / 'file' / 'some.svg'}: "):
        save(tmp_path / "file" / "some.svg", "A caption", 1, lambda _: None)


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(AdaptorError, match=r"replay needs matplotlib.*request-adaptor\[replay\]"):
        sheet(1, 1)
