"""Which batch schedulers a configuration may name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adaptor.config.loading import parse_config
from adaptor.config.registered import SOURCE_TREE, backend_names, load_backend
from adaptor.errors import ConfigError
from adaptor.plugins import BACKENDS
from tests.backends.distribution import installed

ROOT = Path(__file__).parents[2]


def broken(site: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(f"sites:\n  hpc:\n{site}", "c.yaml")
    return str(caught.value)


def test_our_own_are_there_installed_or_not() -> None:
    assert set(backend_names()) >= {"local", "slurm", "pbs"}


def test_the_source_tree_names_what_is_installed() -> None:
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["entry-points"][BACKENDS] == SOURCE_TREE


def test_a_mistyped_backend_is_named_with_its_likely_meaning() -> None:
    message = broken("    backend: slrum\n")
    assert message.startswith("c.yaml:3: sites.hpc.backend: no batch scheduler 'slrum' is installed")
    assert "did you mean `slurm`?" in message


def test_an_unknown_backend_is_told_what_there_is() -> None:
    assert "(there are " in broken("    backend: cray\n")


def test_a_backend_of_a_package_of_ours_that_is_missing_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adaptor.config.registered.installed", lambda _group: {})
    message = broken("    backend: gridengine\n")
    assert "c.yaml:3: sites.hpc.backend: gridengine needs request-adaptor-gridengine: in a clone" in message
    assert message.endswith("python -m pip install ./plugins/gridengine")


def test_a_package_that_is_installed_adds_a_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path, "mine", "1 / 0\n"))
    with pytest.raises(ConfigError, match="cannot be loaded: ZeroDivisionError"):
        load_backend("mine")
    (tmp_path / "backend_mine.py").write_text("from backends.local.backend_type import LOCAL as TYPE\n")
    sys.modules.pop("backend_mine", None)
    assert load_backend("mine").donation_modes == ()
    assert "mine" in backend_names()


def test_a_package_that_is_gone_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as there:
        there.syspath_prepend(installed(tmp_path, "gone", ""))
        assert "gone" in backend_names()
    assert "gone" not in backend_names()


def test_no_command_pays_for_it_that_reads_no_configuration() -> None:
    """The metadata of packages is slow to import and to read."""
    code = (
        "import sys, adaptor.cli.main, adaptor.config.schema, adaptor.worker.agent\n"
        "print('importlib.metadata' in sys.modules, 'backends.registry' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "False"]
