"""Takes the pictures of the dashboard: two bags on a real Slurm whose nodes others use.

    python -m tests.demo.dashboard_pictures docs

Needs Slurm (`tests/clusters/install-slurm`) and Chromium (`tests/dashboard/install-chromium`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.clusters.slurm_conf import ClusterOptions
from tests.dashboard.browser import launched
from tests.demo.stage import stage

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
    bags = {"fits.bag": _FITS, "spectra.bag": _SPECTRA}
    with stage(ClusterOptions(nodes=4, cpus=8), _OTHERS, bags) as made:
        page = subprocess.Popen(
            ["adaptor", "dashboard", "--port", "0"],
            cwd=made.folder,
            env=made.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            made.run("adaptor", "submit", "fits.bag", "--budget", "12")
            while json.loads(made.run("adaptor", "status", "--json"))["bags"][0]["done"] < _DONE:
                time.sleep(1)
            made.run("adaptor", "submit", "spectra.bag", "--budget", "6")
            assert page.stdout is not None
            page.stdout.readline()
            _photograph(page.stdout.readline().strip(), folder)
        finally:
            page.terminate()
            page.wait(20)


def _photograph(address: str, folder: Path) -> None:
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


if __name__ == "__main__":
    take(Path(sys.argv[1]).resolve())
