"""A daemon of its own for a measurement, in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from adaptor.processes.trees import end_trees

ADAPTOR = str(Path(sys.executable).with_name("adaptor"))
_CONFIG = """
sites:
  local:
    backend: local
    processors: {processors}
    initial_tr: 10m
    pad: 10s
    idle_timeout: 10s
"""


class PrivateDaemon(msgspec.Struct, frozen=True):
    """Place of a daemon."""

    folder: Path
    environment: dict[str, str]

    def adaptor(self, *arguments: str) -> str:
        """Output of an `adaptor` command. Raises subprocess.CalledProcessError."""
        done = subprocess.run(
            [ADAPTOR, *arguments],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
        )
        return done.stdout.decode()

    def pid(self) -> int:
        """The process id of the running daemon."""
        pid = msgspec.json.decode(self.adaptor("status", "--daemon", "--json"))["pid"]
        return int(pid)


@contextlib.contextmanager
def private_folder(processors: int) -> Iterator[PrivateDaemon]:
    """With one small local site, without a daemon yet; nothing that runs there stays."""
    with private_place(_CONFIG.format(processors=processors)) as place:
        yield place


@contextlib.contextmanager
def private_place(text: str, environment: Mapping[str, str] | None = None) -> Iterator[PrivateDaemon]:
    """A state directory and a configuration of this text; the daemon and its pilots are ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="adaptor-bench-") as name:
        folder = Path(name)
        config = folder / "config.yaml"
        config.write_text(text)
        places = {"ADAPTOR_DIR": str(folder / "state"), "ADAPTOR_CONFIG": str(config)}
        place = PrivateDaemon(folder, {**os.environ, **(environment or {}), **places})
        try:
            yield place
        finally:
            # End the daemon before its folder is removed: without it a pilot would run to its time limit.
            stop = [ADAPTOR, "daemon", "stop", "--pilots"]  # fails where none runs any more
            subprocess.run(stop, env=place.environment, capture_output=True, check=False)
            jobs = place.folder / "state" / "sites" / "local"
            for note in jobs.glob("*.job.json"):
                end_trees(f"{jobs}/{note.name.partition('.')[0]}")


@contextlib.contextmanager
def private_daemon(processors: int) -> Iterator[PrivateDaemon]:
    """A running daemon; it and its pilots are ended afterwards."""
    with private_folder(processors) as place:
        place.adaptor("daemon", "start")
        yield place
