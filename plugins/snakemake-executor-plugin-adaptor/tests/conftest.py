from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.lab import Lab


@pytest.fixture
def lab(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A daemon of its own, which Snakemake finds by $ADAPTOR_DIR."""
    lab = Lab(tmp_path_factory.mktemp("lab"))
    monkeypatch.setenv("ADAPTOR_DIR", str(lab.state))
    yield lab
    lab.close()


@pytest.fixture
def here(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for workflows, with a daemon of two processors of this machine."""
    lab.configure("sites: {here: {backend: local, processors: 2, initial_tr: 5m}}")
    lab.run("daemon", "start")
    monkeypatch.chdir(lab.work)
    return lab.work
