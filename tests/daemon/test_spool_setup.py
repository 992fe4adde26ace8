"""The key `spool` of a site, and `adaptor site check` at a spool."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.cli.operating.sites import findings
from adaptor.config.loading import parse_config
from adaptor.config.schema import SiteConfig
from adaptor.daemon.spool import latency_of
from adaptor.errors import ConfigError

SITE = "sites:\n  x:\n    backend: slurm\n"


def test_there_is_none_unless_it_is_asked_for() -> None:
    (site,) = parse_config(SITE, "f").sites.values()
    assert site.spool is None
    assert latency_of(site) == 0


@pytest.mark.parametrize("path", ["/scratch/me/mail", "~/mail"])
def test_a_folder_here(path: str) -> None:
    (site,) = parse_config(f"{SITE}    spool: {path}\n", "f").sites.values()
    assert site.spool == path
    assert latency_of(site) > 0


def test_a_folder_there() -> None:
    (site,) = parse_config(f"{SITE}    ssh: {{host: login}}\n    spool: mail\n", "f").sites.values()
    assert site.spool == "mail"
    assert latency_of(site) > 0


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("    spool: mail\n", "not an absolute path"),
        ("    spool: ~/m\n    ssh: {host: login}\n", "must be a remote path"),
        ("    spool: [1]\n", "spool"),
    ],
)
def test_what_cannot_be_is_an_error_with_its_line(lines: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        parse_config(SITE + lines, "f")
    assert str(caught.value).startswith("f:4: sites.x.spool")


def texts(spool: Path, level: str) -> list[str]:
    site = SiteConfig(backend="local", spool=str(spool))
    return [finding.text for finding in findings(site) if finding.level == level]


def test_a_spool_that_can_be_used_is_left_as_it_was(tmp_path: Path) -> None:
    spool = tmp_path / "spools"
    assert any(f"spool {spool} is private" in text for text in texts(spool, "ok"))
    assert list(spool.iterdir()) == []


def test_a_spool_that_is_open_to_others(tmp_path: Path) -> None:
    spool = tmp_path / "spools"
    spool.mkdir()
    spool.chmod(0o755)
    (problem,) = texts(spool, "error")
    assert f"chmod 700 {spool}" in problem


@pytest.mark.parametrize("name", ["file/mail", "file"])
def test_a_spool_that_is_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    assert any(text.startswith("spool: ") for text in texts(tmp_path / name, "error"))
