"""What a reload would change, and what it refuses before anything ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.daemon.configured import changes, checked_anew, configured
from adaptor.errors import AdaptorError, ConfigError
from adaptor.model import Limits

HERE = "sites:\n  here: {backend: local, processors: 2}\n"


def test_the_sites_and_sections_that_differ_are_named(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(HERE + "  old: {backend: local}\n")
    before = configured(str(path))
    path.write_text(HERE.replace("2", "3") + "  new: {backend: local, processors: 1}\njournal: {keep: 30d}\n")
    now = checked_anew(before, tmp_path, "i")
    found = changes(before, now)
    assert (found.added, found.removed, found.changed, found.others) == (
        ["new"],
        ["old"],
        ["here"],
        ["journal"],
    )
    assert now.limits is not None
    assert now.limits["here"] == Limits(max_pending_requests=4, max_proc=3, max_tr=86_400)
    assert found.digest != before.digest


def test_an_edit_of_a_comment_changes_nothing_but_the_digest(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(HERE)
    before = configured(str(path))
    path.write_text(f"# a comment\n{HERE}")
    found = changes(before, checked_anew(before, tmp_path, "i"))
    assert not found.any
    assert found.digest != before.digest


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "sites:\n  here: {backend: local, procesors: 2}\n",
            "site.yaml:2: sites.here.procesors: unk",
        ),
        ("sites:\n  here: {backend: slurm}\n", "sinfo|scontrol"),
        ("sites:\n  here: {backend: local, spool: /dev/null/x}\n", "sites.here.spool"),
    ],
)
def test_what_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(HERE)
    before = configured(str(path))
    monkeypatch.setenv("PATH", "/nowhere")
    path.write_text(text)
    with pytest.raises(AdaptorError, match=says):
        checked_anew(before, tmp_path, "i")


def test_a_file_that_is_gone_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ADAPTOR_CONFIG", raising=False)
    path = tmp_path / "adaptor" / "config.yaml"
    path.parent.mkdir()
    path.write_text(HERE)
    before = configured(None)
    path.unlink()
    with pytest.raises(ConfigError, match=r"config.yaml: the configuration is gone"):
        checked_anew(before, tmp_path, "i")
