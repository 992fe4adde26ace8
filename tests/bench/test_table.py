"""What is measured stands beside the speed of the processor."""

from __future__ import annotations

import pytest

from bench import table
from bench.table import Row, in_words, show, timed


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0366, "36.6 ms"), (0.00041, "0.41 ms"), (1.5, "1.5 s"), (1320, "22 min")]
)
def test_times_in_words(seconds, words):
    assert in_words(seconds) == words


def test_a_slow_processor_is_taken_into_account(monkeypatch, capsys):
    monkeypatch.setattr(table, "calibration", lambda: 2 * table.REFERENCE)
    show("Some", [timed("a step", 0.096, 0.050), Row("memory", "90 MB", "≤ 150 MB")])
    step, memory = (line.split() for line in capsys.readouterr().out.splitlines() if "≤" in line)
    assert "48 ms" in " ".join(step)
    assert "150 ms" in " ".join(step)
    assert "≤ 50 ms" in " ".join(step)
    assert "ms" not in memory


def test_each_time_is_calibrated_when_it_was_measured(monkeypatch, capsys):
    done = []
    monkeypatch.setattr(table, "calibration", lambda: done.append("calibrated") or table.REFERENCE)

    def rows():
        for name in ("first", "second"):
            done.append(name)
            yield timed(name, 0.1)

    show("Some", rows())
    assert done == ["first", "calibrated", "second", "calibrated"]
    assert capsys.readouterr().out.count("100 ms") == 4, "as measured, and as it would be"


def test_the_calibration_is_work():
    assert table.calibration() > 0
    assert table.at_reference(0.3, table.REFERENCE) == 0.3
