"""`adaptor site check` at a spool."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.cli.operating.site_check import findings
from adaptor.config.schema import SiteConfig


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
