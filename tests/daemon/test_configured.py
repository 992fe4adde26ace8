"""What a reload would change, and what it refuses before anything ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.bag_spec import BagSpec
from adaptor.config.loading import remember_config
from adaptor.daemon.configured import changes, check_sites, checked_anew, configured, continued
from adaptor.errors import AdaptorError, ConfigError, VanishedSitesError
from adaptor.journal.journal import Journal
from adaptor.model import CraftedRequest, Limits, Request
from backends.local.backend_type import folder_of
from tests.journal.bags import add_bag

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
    assert now.limits["here"] == Limits(max_pending_requests=4, max_pilots=4, max_proc=3, max_tr=86_400)
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


@pytest.fixture
def last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the last daemon of the state directory `tmp_path` used."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("ADAPTOR_CONFIG", raising=False)
    path = tmp_path / "site.yaml"
    path.write_text(HERE)
    remember_config(tmp_path, path, ["here"])
    return path


def leave(directory: Path, what: str) -> None:
    """Unfinished work in the journal."""
    journal = Journal(directory)
    if what in ("bag", "bag of hpc"):
        sites = ["hpc"] if what == "bag of hpc" else []
        spec = BagSpec(name="b", cwd="/", output="/o", environment={}, sites=sites)
        add_bag(journal, spec, [], 1.0, open=True)
    if what == "pilot":
        crafted = CraftedRequest(Request(16, 60), predicted_start=None, tasks=1, reason="")
        journal.add_pilots("hpc", "adaptor-x.hpc.", [crafted], 1.0)
    journal.close()


@pytest.mark.parametrize("what", ["bag", "pilot"])
def test_unfinished_work_continues_by_the_file_of_the_last_daemon(
    tmp_path: Path, last: Path, what: str
) -> None:
    leave(tmp_path, what)
    assert continued(tmp_path, None) == last


@pytest.mark.parametrize("what", ["nothing", "no journal"])
def test_without_unfinished_work_the_last_file_does_not_count(tmp_path: Path, last: Path, what: str) -> None:
    if what == "nothing":
        leave(tmp_path, what)
    last.unlink()
    assert continued(tmp_path, None) is None


def test_a_file_that_is_named_counts_before_that_of_the_last_daemon(
    tmp_path: Path, last: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(tmp_path, "bag")
    assert continued(tmp_path, str(last)) is None
    monkeypatch.setenv("ADAPTOR_CONFIG", str(last))
    assert continued(tmp_path, None) is None


def test_the_default_file_needs_no_memory(tmp_path: Path, last: Path) -> None:
    leave(tmp_path, "bag")
    (tmp_path / "config" / "adaptor").mkdir(parents=True)
    (tmp_path / "config" / "adaptor" / "config.yaml").symlink_to(last)
    assert continued(tmp_path, None) is None


def test_the_last_file_is_named_where_it_is_gone(tmp_path: Path, last: Path) -> None:
    leave(tmp_path, "pilot")
    last.unlink()
    with pytest.raises(ConfigError, match=r"site\.yaml: no such file; the last daemon .* --config"):
        continued(tmp_path, None)


def test_a_daemon_without_a_file_leaves_none_to_the_next(tmp_path: Path, last: Path) -> None:
    leave(tmp_path, "bag")
    remember_config(tmp_path, None, ["local"])
    assert continued(tmp_path, None) is None


SITES = {"hpc": "hpc: {backend: local, processors: 2}", "here": "here: {backend: local, processors: 2}"}


def check(directory: Path, sites: list[str], before: list[str] | None) -> None:
    """The check of a start with these sites; the last daemon had those `before`, None: there was none."""
    path = directory / "new.yaml"
    path.write_text("sites:\n" + "".join(f"  {SITES[name]}\n" for name in sites))
    if before is not None:
        remember_config(directory, directory / "last.yaml", before)
    check_sites(directory, configured(str(path)))


@pytest.mark.parametrize(
    ("left", "sites", "before", "says"),
    [
        ("pilot", ["here"], ["hpc", "here"], "pilot 1 of hpc is in the system"),
        ("pilot", ["here"], ["hpc"], "pilot 1 of hpc is in the system"),
        ("bag of hpc", ["here"], ["hpc", "here"], "bag 1 may run only there"),
        ("bag", ["here"], ["hpc"], "bag 1 runs there"),
    ],
)
def test_sites_on_which_work_depends_do_not_vanish(
    tmp_path: Path, left: str, sites: list[str], before: list[str], says: str
) -> None:
    leave(tmp_path, left)
    with pytest.raises(VanishedSitesError, match=f"hpc would be no site any more, but {says}") as told:
        check(tmp_path, sites, before)
    assert f"the last one: {tmp_path}/last.yaml) with --config" in str(told.value)
    assert "adaptor daemon start --drop-sites" in str(told.value)


@pytest.mark.parametrize(
    ("left", "sites", "before"),
    [
        ("pilot", ["here"], ["here"]),  # which were dropped before
        ("pilot", ["here"], None),
        ("pilot", ["hpc"], ["hpc", "here"]),
        ("bag", ["here"], ["hpc", "here"]),
        ("bag of hpc", ["hpc"], ["hpc", "here"]),
        ("nothing", ["here"], ["hpc"]),
    ],
)
def test_sites_without_work_may_go(
    tmp_path: Path, left: str, sites: list[str], before: list[str] | None
) -> None:
    leave(tmp_path, left)
    check(tmp_path, sites, before)


def test_a_local_site_may_go_while_its_pilots_leave(tmp_path: Path) -> None:
    """They are processes of this machine, and looked up until they have ended."""
    leave(tmp_path, "pilot")
    (tmp_path / "sites").mkdir(mode=0o700)
    folder_of("hpc", tmp_path).mkdir(mode=0o700)
    check(tmp_path, ["here"], ["hpc"])
