"""What a bag stages on nodes of a real Slurm: copied there, and gone with the last pilot, killed ones too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.bundles.staged import environment
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = pytest.mark.slurm


@pytest.mark.usefixtures("slurm")
def test_pilots_share_a_copy_and_a_killed_one_leaves_none(lab: Lab, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir(mode=0o700)
    terms = {
        "initial_tr": "30s",
        "idle_timeout": 5,
        "daemon": {"worker_timeout": 8},
        "node_folder": str(disk),
    }
    lab.configure(site("slurm", (3, 6, "20m"), **terms))
    environment(lab.work / ".venv")
    killed = lab.work / "killed"
    lab.bag(
        [
            f"[ -e {killed} ] || {{ touch {killed}; kill -9 $PPID; sleep 60; }}; command -v tool",
            *["command -v tool; sleep 1"] * 11,
        ]
    )
    lab.submit("tasks.bag", "--stage", ".venv")
    lab.wait()
    exactly_one_result_each(lab, 1, 12)
    texts = {Path(task["stdout"]).read_text() for task in lab.results(1)}
    assert len(texts) == 1
    assert texts.pop().startswith(f"{disk}/adaptor-{os.geteuid()}/")
    until(lambda: not [name for _, _, names in os.walk(disk) for name in names], "no file of a copy is left")
