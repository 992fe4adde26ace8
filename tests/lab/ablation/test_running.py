"""The rows of measures stay in a file, which another run goes on from."""

from __future__ import annotations

from pathlib import Path

from lab.ablation.running import read, run


def test_a_run_without_a_measure_leaves_a_file_that_the_next_one_reads(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    assert not list(run([], rows, 1))
    assert not list(run([], rows, 1))
    assert not read(rows)
