"""Common parts of the tests of commands."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from adaptor_experiments.derose.design import WORKLOADS

SMALL = Path(__file__).parents[2] / "fixtures" / "traces" / "small.swf"


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder in which a small invented trace stands in for each real one."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for workload in WORKLOADS:
        (folder / f"{workload.file}.swf.gz").write_bytes(gzip.compress(SMALL.read_bytes()))
    return folder
