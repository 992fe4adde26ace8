"""`adaptor site check` at a mailbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.cli.operating.site_check import findings
from adaptor.config.schema import SiteConfig


def texts(mailbox: Path, level: str) -> list[str]:
    site = SiteConfig(backend="local", mailbox=str(mailbox))
    return [finding.text for finding in findings(site) if finding.level == level]


def test_a_mailbox_that_can_be_used_is_left_as_it_was(tmp_path: Path) -> None:
    mailbox = tmp_path / "mail"
    assert any(f"mailbox {mailbox} is private" in text for text in texts(mailbox, "ok"))
    assert list(mailbox.iterdir()) == []


def test_a_mailbox_that_is_open_to_others(tmp_path: Path) -> None:
    mailbox = tmp_path / "mail"
    mailbox.mkdir()
    mailbox.chmod(0o755)
    (problem,) = texts(mailbox, "error")
    assert f"chmod 700 {mailbox}" in problem


@pytest.mark.parametrize("name", ["file/mail", "file"])
def test_a_mailbox_that_is_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    assert any(text.startswith("mailbox: ") for text in texts(tmp_path / name, "error"))
