"""The adaptor as one file: it runs a bag, and its workers start from what it unpacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.source_copy import LONG, build, copy_source, run
from tests.source_tree import ROOT

pytestmark = pytest.mark.timeout(LONG)


@pytest.fixture
def home() -> Iterator[Path]:
    """Short: the path of a unix socket has 107 bytes at most."""
    made = Path(tempfile.mkdtemp(prefix="pex-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_it_runs_a_bag_whose_workers_start_from_the_same_file(home: Path, tmp_path: Path) -> None:
    wheel = build(copy_source(tmp_path / "tree"), tmp_path / "wheel", "--wheel")
    single = home / "adaptor.pex"
    options = ("--console-script", "adaptor", "--venv")
    assert " ".join(options) in (ROOT / "Makefile").read_text(encoding="utf-8")
    what = f"request-adaptor[] @ file://{wheel}"
    run(sys.executable, "-m", "pex", what, *options, "--output-file", str(single), where=tmp_path)

    (home / "tasks.bag").write_text("echo one\necho two\n")
    ours = ("ADAPTOR", "XDG_", "PYTHON", "PEX")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment = {**inherited, "HOME": str(home), "PEX_ROOT": str(home / "shared")}

    def adaptor(*words: str) -> str:
        done = subprocess.run(
            [str(single), *words], env=environment, cwd=home, capture_output=True, text=True, timeout=LONG
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    try:
        assert "2 tasks done" in adaptor("run", "tasks.bag")
        assert "two" in adaptor("results", "--stdout")
    finally:
        subprocess.run([str(single), "daemon", "stop"], env=environment, capture_output=True, timeout=60)
    job = home / ".local" / "state" / "adaptor" / "sites" / "local" / "1.job.json"
    assert f"{home}/shared/venvs/" in job.read_text(encoding="utf-8")
