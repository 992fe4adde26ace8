"""Records a terminal: a bag planned, submitted and watched on a real Slurm whose nodes others use.

    python -m tests.demo.recording docs/watch.svg

Needs Slurm (`tests/clusters/install-slurm`) and termtosvg (`pip install termtosvg`) in the search path.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.clusters.slurm_conf import ClusterOptions
from tests.demo.stage import stage

_BAG = "".join(f"sleep {0.5 + 0.1 * (7 * number % 31):.1f}; echo {number}\n" for number in range(150))
_TYPED = (
    ("adaptor plan sweep.bag --time 2s", 3),
    ("adaptor submit sweep.bag --time 2s", 1),
    ("adaptor watch", 2),
    ("adaptor report", 5),
)
"""Commands that are typed, and the seconds for which their ends are shown."""


def _script() -> str:
    lines = [f"printf '$ {line}\\n'; sleep 1; {line}; sleep {pause}\n" for line, pause in _TYPED]
    return "".join(lines)


def record(path: Path) -> None:
    # Two nodes are busy, and a job that needs all four is planned after them.
    with stage(ClusterOptions(nodes=4, cpus=4), ((2, 12), (4, 30)), {"sweep.bag": _BAG}) as made:
        (made.folder / "typed.sh").write_text(_script(), encoding="utf-8")
        recorder = ["termtosvg", str(path), "-g", "96x16", "-m", "250", "-t", "window_frame"]
        environment = {**made.environment, "COLORTERM": "truecolor"}
        subprocess.run([*recorder, "-c", "sh typed.sh"], cwd=made.folder, env=environment, check=True)


if __name__ == "__main__":
    record(Path(sys.argv[1]).resolve())
