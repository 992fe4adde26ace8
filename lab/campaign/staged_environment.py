"""Metadata operations on a shared folder for the Python tasks of a bag, with `--stage` and without.

    python -m lab.campaign.staged_environment --environment .venv --tasks 1000 --code 'import numpy'

Each task is `.venv/bin/python src/fit.py`, whose content `--code` is.

The bag runs on a local site. `strace` counts what its worker and its tasks ask of the shared folder, which
has the environment, the folder of the tasks, their output and the state directory. The count of the command
that submits the bag is apart: it packs the archive, once and not on a node.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec

from tests.e2e.lab import Lab, site

_CALLS = "%file,getdents64"
_NOT_ASKED = ("getcwd",)
"""What a file server answers from its metadata: all calls that take a path, and the lists of folders."""
_LINE = re.compile(
    r"(?:\d+ +)?(?P<call>\w+)\((?:(?:AT_FDCWD|\d+)<(?P<base>[^>]*)>)?(?:, )?(?:\"(?P<path>[^\"]*)\")?"
)
_TIMEOUT = 3600.0


class Count(msgspec.Struct, frozen=True):
    """One run of the bag."""

    nodes: int  # operations of its worker and its tasks on the shared folder
    submit: int  # of the command that submits it
    seconds: float
    calls: dict[str, int]  # those of `nodes` by system call


def main() -> int:
    """0; 1 where the operations are not 20 times fewer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, required=True, help="a virtual or conda environment")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--code", default="import numpy")
    parser.add_argument("--output-files", default="each", help="as of `adaptor submit`")
    given = parser.parse_args()
    if shutil.which("strace") is None:
        parser.error("strace is not installed")
    ways = ("", ".venv", ".venv,src")
    runs = [count(given.environment, given.tasks, given.code, given.output_files, stage) for stage in ways]
    before, _, after = runs
    print(f"{given.tasks} tasks of {given.code!r}, operations on the shared folder:")
    for what, run in zip(ways, runs, strict=True):
        way = f"--stage {what}" if what else "the folders themselves"
        print(f"  {way}: {run.nodes:,} on nodes, {run.submit:,} to submit, {run.seconds:.0f} s")
        print(f"    {json.dumps(dict(sorted(run.calls.items(), key=lambda each: -each[1])[:8]))}")
    ratio, all_in = before.nodes / after.nodes, before.nodes / (after.nodes + after.submit)
    print(f"  {ratio:.1f} times fewer on nodes, {all_in:.1f} with the submission")
    return 0 if ratio >= 20 else 1


def count(environment: Path, tasks: int, code: str, output_files: str, stage: str) -> Count:
    """Run the bag once. `stage`: what it stages; empty: nothing."""
    with tempfile.TemporaryDirectory(prefix="shared-") as folder, tempfile.TemporaryDirectory() as traces:
        lab = Lab(Path(folder))
        try:
            copied = lab.work / ".venv"
            shutil.copytree(environment, copied, symlinks=True)
            wrapper = _wrapper(Path(traces))
            lab.configure(site("local", (2, 2, "2h"), processors=2, python=str(wrapper), initial_tr="1h"))
            (lab.work / "src").mkdir()
            (lab.work / "src" / "fit.py").write_text(code)
            lab.bag(f".venv/bin/python src/fit.py {task}" for task in range(tasks))
            options = ("--output-files", output_files, *(("--stage", stage) if stage else ()))
            lab.run("daemon", "start")
            began = time.monotonic()
            submitting = Path(traces, "submit")
            words = [
                "strace",
                "-f",
                "-y",
                "-qq",
                "--seccomp-bpf",
                "-e",
                f"trace={_CALLS}",
                "-o",
                str(submitting),
            ]
            command = lab.command("submit", "tasks.bag", *options)
            subprocess.run([*words, *command], env=lab.environment, cwd=lab.work, check=True)
            lab.run("watch", "1", timeout=_TIMEOUT)
            seconds = time.monotonic() - began
            assert lab.status()["done"] == tasks, lab.log()
        finally:
            lab.close()
        found = Counter[str]()
        for trace in Path(traces).glob("worker-*"):
            found += _operations(trace, folder)
        return Count(found.total(), _operations(submitting, folder).total(), seconds, dict(found))


def _wrapper(traces: Path) -> Path:
    """The interpreter of the workers, traced with all that it starts."""
    path = traces / "python"
    words = ["strace", "-D", "-f", "-y", "-qq", "--seccomp-bpf", "-e", f"trace={_CALLS}"]
    traced = shlex.join([*words, "-o", str(traces / "worker")])
    path.write_text(f'#!/bin/sh\nexec {traced}-$$ {shlex.quote(sys.executable)} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _operations(trace: Path, folder: str) -> Counter[str]:
    """By system call, those on a folder and what is below it."""
    found = Counter[str]()
    with trace.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = _LINE.match(line)
            if match is None or match["call"] in _NOT_ASKED:
                continue
            path, base = match["path"] or "", match["base"] or ""
            if not path and match["call"] != "getdents64":  # of an open file
                continue
            place = path if path.startswith("/") else f"{base}/{path}"
            if place == folder or place.startswith(f"{folder}/"):
                found[match["call"]] += 1
    return found


if __name__ == "__main__":
    sys.exit(main())
