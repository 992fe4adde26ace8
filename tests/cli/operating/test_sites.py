"""`site init` and `site check`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adaptor.config import loading
from adaptor.config.loading import default_config_path, load_config, parse_config, read_policy
from adaptor.config.schema import SiteConfig
from backends.base import SchedulerError
from backends.findings import Finding
from backends.slurm import discover
from tests.cli.invoking import Cli

CLUSTER = "sites:\n  batch:\n    backend: slurm\n    partition: batch\n"


@pytest.fixture
def no_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(timeout: float = 30.0) -> str:
        raise SchedulerError("sinfo is not on the PATH")

    monkeypatch.setattr(discover, "describe_sites", fail)


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """A cluster that describes itself; the list is what a check finds."""
    findings = [Finding("ok", "Slurm answers"), Finding("warning", "sacct does not")]
    monkeypatch.setattr(discover, "describe_sites", lambda: CLUSTER)
    monkeypatch.setattr(discover, "check_site", lambda site, machine: findings)
    return findings


def test_what_the_operator_allows_is_listed_and_checked(
    cli: Cli, slurm: list[Finding], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`init` writes what stays within it (`tests/backends/test_ceilings.py`)."""
    path = tmp_path / "policy.yaml"
    path.write_text("poll_interval: 2m\nlimits: {max_proc: 512}\n")
    path.chmod(0o644)
    monkeypatch.setattr(parse_config, "__defaults__", (lambda: read_policy(path, os.getuid()),))
    monkeypatch.setattr(load_config, "__defaults__", parse_config.__defaults__)
    config = tmp_path / "c.yaml"
    config.write_text(CLUSTER)
    allowed = "poll_interval at least 2m, limits.max_proc at most 512"
    assert (
        cli("--config", str(config), "status", "--sites").lines[-1].strip()
        == f"the operator allows: {allowed}"
    )
    assert (
        f"hpc: ok      the operator allows {allowed} ({path})".replace("hpc", "batch")
        in cli("--config", str(config), "site", "check").lines
    )
    config.write_text(f"{CLUSTER}    poll_interval: 30s\n")
    outcome = cli("--config", str(config), "site", "check")
    assert outcome.code == 2
    assert f"{config}:5: sites.batch.poll_interval: 30s" in outcome.err
    assert f"({path}:1)" in outcome.err


def test_check_tells_of_which_partition_a_finding_is(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def check(site: SiteConfig, machine: object) -> list[Finding]:
        return [Finding("ok", "Slurm answers"), Finding("ok", f"partition {site.partition}: 2 nodes")]

    monkeypatch.setattr(discover, "check_site", check)
    config = tmp_path / "c.yaml"
    config.write_text("sites: {hpc: {backend: slurm, partitions: {a: {}, b: {partition: batch}}}}\n")
    first, *others = cli("--config", str(config), "site", "check").lines
    assert first.startswith("state directory: ")
    assert others == [
        "hpc: ok      Slurm answers",
        "hpc: ok      a: partition a: 2 nodes",
        "hpc: ok      b: partition batch: 2 nodes",
    ]


def test_init_writes_what_the_cluster_says(cli: Cli, slurm: list[Finding]) -> None:
    outcome = cli("site", "init")
    path = default_config_path()
    assert outcome.code == 0
    assert outcome.out.startswith(f"{path}: batch")
    assert path.read_text() == CLUSTER
    assert cli("site", "init", "--output", "-").out == CLUSTER


def test_init_writes_where_the_daemon_will_read(
    cli: Cli, slurm: list[Finding], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.yaml"
    monkeypatch.setenv("ADAPTOR_CONFIG", str(path))
    assert cli("site", "init").code == 0
    assert path.read_text() == CLUSTER


def test_init_never_writes_over_a_file_unless_told(cli: Cli, slurm: list[Finding], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("precious\n")
    outcome = cli("site", "init", "--output", str(path))
    assert outcome.code == 2
    assert "--force" in outcome.err
    assert path.read_text() == "precious\n"
    outcome = cli("site", "init", "--config", str(path), "--force", "--json")
    assert outcome.value == {"file": str(path), "sites": ["batch"]}
    assert path.read_text() == CLUSTER


def test_init_writes_no_second_description_of_what_the_operator_describes(
    cli: Cli, slurm: list[Finding], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    operators = tmp_path / "sites.yaml"
    operators.write_text(CLUSTER)
    monkeypatch.setattr(loading, "SITES", operators)
    outcome = cli("site", "init")
    assert (outcome.code, default_config_path().exists()) == (2, False)
    assert f"{operators} has the sites of this machine for all users" in outcome.err
    assert cli("site", "init", "--force").code == 0
    assert default_config_path().exists()
    assert cli("site", "init", "--output", str(tmp_path / "else.yaml")).code == 0


def test_init_without_slurm_describes_this_machine(cli: Cli, no_slurm: None) -> None:
    outcome = cli("site", "init")
    assert outcome.code == 0
    assert "no Slurm answers here" in outcome.err
    config = load_config(default_config_path())
    assert config.sites["local"].processors == len(os.sched_getaffinity(0))


def test_init_where_nothing_can_be_written(cli: Cli, slurm: list[Finding], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = cli("site", "init", "--output", str(tmp_path / "file" / "x.yaml"))
    assert outcome.code == 1
    assert "cannot be written" in outcome.err


def test_check_tells_findings_and_fails_on_errors(cli: Cli, slurm: list[Finding], tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(CLUSTER)
    outcome = cli("site", "check", "--config", str(path))
    assert outcome.code == 0
    assert outcome.lines[1:] == ["batch: ok      Slurm answers", "batch: warning sacct does not"]
    slurm.append(Finding("error", "no partition batch"))
    assert cli("site", "check", "batch", "--config", str(path)).code == 1
    value = cli("site", "check", "--config", str(path), "--json").value
    assert value[-1] == {"site": "batch", "level": "error", "text": "no partition batch"}
    outcome = cli("site", "check", "bach", "--config", str(path))
    assert outcome.code == 2
    assert "did you mean 'batch'?" in outcome.err


@pytest.mark.parametrize(
    ("lines", "level", "words"),
    [
        ("", "ok", "of this machine's"),
        ("processors: 100000", "warning", "this machine gives"),
        ("processors: 1\n    limits: {max_proc: 2}", "error", "lower it"),
    ],
)
def test_check_of_a_local_site(cli: Cli, tmp_path: Path, lines: str, level: str, words: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"sites:\n  here:\n    backend: local\n    {lines}\n")
    outcome = cli("site", "check", "--config", str(path), "--json")
    assert outcome.value[-1]["level"] == level
    assert words in outcome.value[-1]["text"]
    assert outcome.code == (1 if level == "error" else 0)


def test_check_live_whose_input_has_ended_names_the_option_that_answers(
    cli: Cli, slurm: list[Finding], tmp_path: Path
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(CLUSTER)
    outcome = cli("site", "check", "--live", "--config", str(path), input=b"")
    assert outcome.code == 2
    assert "cannot ask 'submit one short job to batch?' because the input has ended" in outcome.err
    assert "--yes" in outcome.err
    assert cli("site", "check", "--live", "--config", str(path), input=b"n\n").code == 130
