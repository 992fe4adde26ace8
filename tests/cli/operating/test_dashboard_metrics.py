"""`metrics`: printed, or as a file that node_exporter reads."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.cli.invoking import Cli, Serve
from tests.dashboard.told import answers


def values(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_are_printed(cli: Cli, serve: Serve) -> None:
    serve(answers())
    assert values(cli("metrics").out)["adaptor_tasks", "done"] == 4


def test_a_file_for_node_exporter_is_written_in_one_step(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    serve(answers())
    folder = tmp_path / "collector"
    folder.mkdir()
    path = folder / "adaptor.prom"
    assert cli("metrics", "--textfile", str(path)).code == 0
    assert values(path.read_text())["adaptor_pilots", "hpc", "running"] == 1
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in folder.iterdir()] == ["adaptor.prom"]


def test_where_nothing_ever_ran_the_daemon_is_down_and_all_is_zero(cli: Cli) -> None:
    found = values(cli("metrics").out)
    assert found["adaptor_up",] == 0
    assert found["adaptor_bags",] == 0


def test_a_file_that_cannot_be_written_is_named(cli: Cli, serve: Serve) -> None:
    serve(answers())
    outcome = cli("metrics", "--textfile", "/nowhere/adaptor.prom")
    assert outcome.code == 1
    assert "/nowhere/adaptor.prom: cannot be written" in outcome.err
    assert cli("metrics", "--every", "10s").code == 2
