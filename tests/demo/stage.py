"""Stage of pictures and recordings: a daemon on a real Slurm whose nodes others use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions


class Stage(msgspec.Struct, frozen=True):
    folder: Path
    """Folder in which commands run, with the bags and the configuration."""
    environment: dict[str, str]

    def run(self, *command: str) -> str:
        """Output of the command. Raises CalledProcessError."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout


@contextmanager
def stage(
    options: ClusterOptions, others: Iterable[tuple[int, int]], bags: Mapping[str, str]
) -> Iterator[Stage]:
    """A daemon that runs, with the configuration of `adaptor site init`.

    Args:
        others: the nodes and minutes of other users' jobs, in the order of their submission.
        bags: the lines of each by the name of its file.
    """
    with ThrowawaySlurm(options) as slurm, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = Stage(
            folder,
            {
                **os.environ,
                **slurm.env,
                "ADAPTOR_DIR": str(folder / "state"),
                "ADAPTOR_CONFIG": str(folder / "site.yaml"),
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            },
        )
        for nodes, minutes in others:
            wanted = (f"-N{nodes}", "--exclusive", f"-t{minutes}", "-o/dev/null")
            made.run("sbatch", *wanted, "--wrap", "sleep 3600")
        for file, lines in bags.items():
            (folder / file).write_text(lines, encoding="utf-8")
        made.run("adaptor", "site", "init", "--output", "site.yaml")
        made.run("adaptor", "daemon", "start")
        try:
            yield made
        finally:
            made.run("adaptor", "daemon", "stop", "--pilots")
