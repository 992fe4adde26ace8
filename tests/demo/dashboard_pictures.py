"""Takes the pictures of the dashboard: two bags on a real Slurm whose nodes others use.

    python -m tests.demo.dashboard_pictures docs

Needs Slurm (`tests/clusters/install-slurm`) and Chromium (`tests/dashboard/install-chromium`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.dashboard.browser import launched

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

_FITS = "".join(
    f"sleep {2 + 0.3 * (7 * number % 23):.1f}; {'exit 3' if number in (9, 40, 77) else 'true'}\n"
    for number in range(260)
)
_SPECTRA = "".join(f"sleep 20; echo {number}\n" for number in range(90))
_OTHERS = ((2, 20), (1, 9), (4, 40))  # nodes and minutes: the last job is planned after the others
_DONE = 60  # tasks of the first bag when the pictures are taken


def take(folder: Path) -> None:
    with ThrowawaySlurm(ClusterOptions(nodes=4, cpus=8)) as slurm, tempfile.TemporaryDirectory() as name:
        home = Path(name)
        environment = {
            **os.environ,
            **slurm.env,
            "ADAPTOR_DIR": str(home / "state"),
            "ADAPTOR_CONFIG": str(home / "site.yaml"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

        def run(*command: str) -> str:
            done = subprocess.run(
                command, cwd=home, env=environment, check=True, stdout=subprocess.PIPE, text=True
            )
            return done.stdout

        for nodes, minutes in _OTHERS:
            run("sbatch", f"-N{nodes}", "--exclusive", f"-t{minutes}", "-o/dev/null", "--wrap", "sleep 3600")
        for bag, lines in (("fits", _FITS), ("spectra", _SPECTRA)):
            (home / f"{bag}.bag").write_text(lines, encoding="utf-8")
        run("adaptor", "site", "init", "--output", "site.yaml")
        run("adaptor", "daemon", "start")
        page = subprocess.Popen(
            ["adaptor", "dashboard", "--port", "0"],
            cwd=home,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            run("adaptor", "submit", "fits.bag", "--budget", "12")
            while json.loads(run("adaptor", "status", "--json"))["bags"][0]["done"] < _DONE:
                time.sleep(1)
            run("adaptor", "submit", "spectra.bag", "--budget", "6")
            assert page.stdout is not None
            page.stdout.readline()
            address = page.stdout.readline().strip()
            with launched() as browser:
                for scheme in ("light", "dark"):
                    view: ViewportSize = {"width": 1180, "height": 1180}
                    shown = browser.new_context(color_scheme=scheme, viewport=view).new_page()
                    shown.goto(address)
                    shown.wait_for_function(
                        "() => Page.known.bags?.length === 2"
                        " && Page.known.queues?.[0]?.boxes.some(box => box.state === 'running')"
                    )
                    shown.wait_for_timeout(1000)  # what has come is drawn
                    shown.screenshot(path=folder / f"dashboard-{scheme}.png")
        finally:
            page.terminate()
            page.wait(20)
            run("adaptor", "daemon", "stop", "--pilots")


if __name__ == "__main__":
    take(Path(sys.argv[1]).resolve())
