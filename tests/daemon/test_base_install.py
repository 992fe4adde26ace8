"""The daemon, the command line and a bag's page do without numpy, scipy and starlette, which are extras."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.living import run_text

_WITHOUT = """
import sys
for name in ("numpy", "scipy", "numba", "matplotlib", "starlette", "uvicorn", "prometheus_client"):
    sys.modules[name] = None
"""


@pytest.mark.parametrize(
    "module",
    [
        *("adaptor.daemon.service", "adaptor.cli.bags.quote", "adaptor.cli.credits"),
        *("adaptor.dashboard.document", "adaptor.dashboard.document"),
    ],
)
def test_it_is_imported_without_the_extras(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"{_WITHOUT}\nimport {module}"], check=True, timeout=60)


@pytest.mark.parametrize("command", ["dashboard"])
def test_the_page_says_what_it_needs(tmp_path: Path, command: str) -> None:
    code = f"{_WITHOUT}\nsys.argv = ['adaptor', {command!r}]\nfrom adaptor.cli.main import main\nmain()"
    environment = {**os.environ, "HOME": str(tmp_path), "ADAPTOR_DIR": str(tmp_path / "state")}
    done = run_text([sys.executable, "-c", code], timeout=60, env=environment)
    assert done.returncode != 0
    assert "python -m pip install 'request-adaptor[web]'" in done.stderr
