"""Records a terminal: a bag planned, submitted and watched on a real Slurm whose nodes others use.

    python -m tests.demo.recording docs/watch.svg

Needs Slurm (`tests/clusters/install-slurm`) and termtosvg (`pip install termtosvg`) in the search path.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions

_BAG = "".join(f"sleep {0.5 + 0.1 * (7 * number % 31):.1f}; echo {number}\n" for number in range(150))
_TYPED = (
    ("adaptor plan sweep.bag --time 2s", 3),
    ("adaptor submit sweep.bag --time 2s", 1),
    ("adaptor watch", 2),
    ("adaptor report", 5),
)
"""What is typed, and for how many seconds its end is shown."""


def _script() -> str:
    lines = [f"printf '$ {line}\\n'; sleep 1; {line}; sleep {pause}\n" for line, pause in _TYPED]
    return "".join(lines)


def record(path: Path) -> None:
    with ThrowawaySlurm(ClusterOptions(nodes=4, cpus=4)) as slurm, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {
            **os.environ,
            **slurm.env,
            "ADAPTOR_DIR": str(folder / "state"),
            "ADAPTOR_CONFIG": str(folder / "site.yaml"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "COLORTERM": "truecolor",
        }

        def run(*command: str) -> None:
            subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)

        # Two nodes are busy, and a job that needs all four is planned after them.
        for nodes, minutes in ((2, 12), (4, 30)):
            run("sbatch", f"-N{nodes}", "--exclusive", f"-t{minutes}", "-o/dev/null", "--wrap", "sleep 3600")
        (folder / "sweep.bag").write_text(_BAG, encoding="utf-8")
        (folder / "typed.sh").write_text(_script(), encoding="utf-8")
        run("adaptor", "site", "init", "--output", "site.yaml")
        run("adaptor", "daemon", "start")
        try:
            recorder = ["termtosvg", str(path), "-g", "96x16", "-m", "250", "-t", "window_frame"]
            subprocess.run([*recorder, "-c", "sh typed.sh"], cwd=folder, env=environment, check=True)
        finally:
            run("adaptor", "daemon", "stop", "--pilots")


if __name__ == "__main__":
    record(Path(sys.argv[1]).resolve())
