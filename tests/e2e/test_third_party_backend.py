"""A batch scheduler of somebody else's package, from the site file to the results of a bag."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.distribution import installed
from tests.e2e.lab import Lab, exactly_one_result_each

CODE = """\
from backends.local.backend_type import LocalType


class ToyType(LocalType):
    title = "toy scheduler"
    poll_interval = 0.5
    discovery_order = 1

    def describe_sites(self):
        return "sites:\\n  toys: {backend: toy, processors: 2, initial_tr: 5, pad: 3, idle_timeout: 2}\\n"


TYPE = ToyType()
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(installed(folder, "toy", CODE)))


@pytest.mark.usefixtures("toy")
def test_a_site_of_another_packages_scheduler_runs_a_bag(lab: Lab) -> None:
    lab.configure(lab.run("site", "init", "--output", "-").stdout)
    assert "of this machine's" in lab.run("site", "check").stdout
    lab.bag("echo $ADAPTOR_TASK_ID" for _ in range(6))
    lab.run("run", "tasks.bag")
    exactly_one_result_each(lab, 1, 6)
    assert {site["backend"] for site in lab.ask("status", "--sites")} == {"toy"}
