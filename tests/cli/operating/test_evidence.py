"""`adaptor evidence export`: a private file or the terminal, by the daemon or by its journal."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from adaptor import api
from adaptor.api import BagReport, Totals
from adaptor.forecast.record import Record
from tests.cli.fake_control import bag_view, pilot_view
from tests.cli.invoking import Cli, Serve

TOTALS = Totals(requests=1, paid=9.0, used=6.0, wasted=3.0, turnaround=None, first_result=None)


@pytest.fixture(autouse=True)
def daemon(serve: Serve) -> None:
    record = Record(bags=0, cost=None, end=None, not_counted={})
    bag = bag_view(7, name="secret", output="/home/ada/out")
    serve(
        {
            api.GetBags: api.Bags([bag], record),
            api.GetReport: BagReport(bag=bag, requests=[], totals=TOTALS),
            api.GetPilots: [pilot_view(1, job="4711", site="hpc")],
            api.GetSeenStarts: [],
        }
    )


def test_it_is_printed(cli: Cli) -> None:
    done = cli("evidence", "export")
    assert done.code == 0
    assert [bag["paid"] for bag in done.value["bags"]] == [9.0]
    assert [word for word in ("secret", "ada", "4711", "hpc") if word in done.out] == []


def test_a_file_is_private_and_its_line_counts(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "evidence.json"
    file.write_text("old")
    done = cli("evidence", "export", "--output", str(file))
    assert done.lines[0].startswith(f"{file}: 1 bag, 1 request, 0 starts, ")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["format"] == 1


def test_a_file_that_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    done = cli("evidence", "export", "--output", str(tmp_path / "no" / "evidence.json"))
    assert (done.code, "cannot be written" in done.err) == (1, True)


def test_a_key_with_a_grant_exports_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADAPTOR_KEY", "/ci.key")
    assert cli("evidence", "export").code == 1
