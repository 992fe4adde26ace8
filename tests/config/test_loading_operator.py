"""What the operator of a machine describes for all users, and the file of a user that adds to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from adaptor.config import loading
from adaptor.config.loading import (
    config_path,
    default_config_path,
    digest_of,
    files_of,
    goes_on_with,
    load_config,
)
from adaptor.config.policy import Policy
from adaptor.errors import ConfigError

OPERATORS = """\
sites:
  hpc:
    backend: slurm
    partition: batch
    limits: {max_proc: 64, max_tr: 12h}
"""
Write = Callable[[str], Path]


@pytest.fixture
def operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator's file."""
    file = tmp_path / "sites.yaml"
    file.write_text(OPERATORS)
    file.chmod(0o644)
    monkeypatch.setattr(loading, "SITES", file)
    monkeypatch.setattr(loading, "ROOT", os.getuid())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ADAPTOR_CONFIG", raising=False)
    return file


@pytest.fixture
def users(operators: Path) -> Write:
    """Writes the file of a user to its usual place."""

    def write(text: str) -> Path:
        file = default_config_path()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write


def test_a_user_without_a_file_has_the_sites_of_the_operator(operators: Path) -> None:
    assert config_path() == operators
    assert list(load_config(config_path(), Policy).sites) == ["hpc"]
    operators.unlink()
    assert config_path() is None


def test_the_file_of_a_user_adds_sites_and_keys_and_its_values_count(users: Write) -> None:
    file = users(
        "sites:\n  hpc: {account: physics, limits: {max_proc: 8}}\n  here: {backend: local, processors: 2}\n"
        "journal: {keep: 10d}\n"
    )
    assert config_path() == file
    found = load_config(file, Policy)
    assert list(found.sites) == ["hpc", "here"]
    hpc = found.sites["hpc"]
    assert (hpc.backend, hpc.partition, hpc.account) == ("slurm", "batch", "physics")
    assert (hpc.limits.max_proc, hpc.limits.max_tr) == (8, 43_200)
    assert found.journal.keep == 864_000


@pytest.mark.parametrize("text", ["", "sites: {}\n", "sites: {hpc: {limits: {}}}\n"])
def test_a_file_that_says_nothing_adds_nothing(users: Write, operators: Path, text: str) -> None:
    assert load_config(users(text), Policy) == load_config(operators, Policy)


def test_another_file_that_is_named_counts_alone(users: Write, tmp_path: Path) -> None:
    users("sites: {here: {backend: local}}")
    named = tmp_path / "named.yaml"
    named.write_text("sites: {mine: {backend: local}}")
    assert list(load_config(config_path(str(named)), Policy).sites) == ["mine"]
    usual = config_path(str(default_config_path()))
    assert usual is not None
    assert list(load_config(usual, Policy).sites) == ["hpc", "here"], "a daemon under systemd names this one"


def test_a_mistake_names_the_file_that_has_it(users: Write, operators: Path) -> None:
    file = users("sites:\n  hpc:\n    acount: physics\n")
    with pytest.raises(ConfigError, match=rf"^{file}:3: sites\.hpc\.acount: unknown key"):
        load_config(file, Policy)
    operators.write_text("sites:\n  hpc:\n    backend: slurm\n    max_proc: 3\n")
    with pytest.raises(ConfigError, match=rf"^{operators}:4: sites\.hpc\.max_proc: unknown key"):
        load_config(file, Policy)


def test_only_root_may_write_what_runs_as_every_user(operators: Path) -> None:
    operators.chmod(0o666)
    with pytest.raises(
        ConfigError, match=f"^{operators}: .* only root may write it: .*chmod 644 {operators}"
    ):
        load_config(config_path(), Policy)


def test_a_daemon_of_the_operator_s_sites_goes_on_with_a_file_that_adds_to_them(
    users: Write, operators: Path, tmp_path: Path
) -> None:
    assert goes_on_with(operators, config_path())
    file = users("sites: {here: {backend: local}}")
    assert goes_on_with(operators, config_path())
    assert goes_on_with(file, config_path())
    assert not goes_on_with(tmp_path / "other.yaml", config_path())
    assert not goes_on_with(operators, None)


def test_an_edit_of_either_file_is_seen(users: Write, operators: Path) -> None:
    alone = digest_of(operators)
    file = users("sites: {here: {backend: local}}")
    assert files_of(file) == [operators, file]
    both = digest_of(file)
    operators.write_text(OPERATORS + "    account: physics\n")
    assert len({alone, both, digest_of(operators), digest_of(file)}) == 4
