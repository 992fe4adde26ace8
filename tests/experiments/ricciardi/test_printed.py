"""The paper's numbers beside ours."""

from __future__ import annotations

from adaptor_experiments.ricciardi.campaign import Settings
from adaptor_experiments.ricciardi.printed import PRINTED, parameters


def test_the_resources_are_those_of_the_paper():
    rows = [row for row in parameters(Settings()).rows if row[0].startswith("Table")]
    assert len(rows) == 2 * 4
    assert {row[-1] for row in rows} == {"the same"}


def test_a_number_that_differs_is_said(monkeypatch):
    monkeypatch.setitem(PRINTED[2], "Grid", "100, 7.5, 1.2, 2.8")
    rows = {(row[0], row[1].partition(":")[0]): row for row in parameters(Settings()).rows}
    assert rows["Table 2", "Grid"][-1] == "differs"
    assert rows["Table 1", "Grid"][-1] == "the same"
