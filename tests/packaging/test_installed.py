"""The wheel in an empty environment: its dependencies fit, and the README's commands run as written."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from adaptor.plugins import AGENTS, FOLDERS, GRID_ENGINE, MCP
from tests.clusters.slurm import ThrowawaySlurm
from tests.packaging.console_blocks import Command, console_blocks
from tests.packaging.source_copy import LONG, build, copy_source
from tests.source_tree import ROOT

pytestmark = pytest.mark.timeout(LONG)

ELSEWHERE = {"git clone": "make demo: tests/demo and tests/e2e"}
"""Blocks that this test does not run, by how they begin, and what tests them."""


@dataclass(frozen=True)
class Empty:
    """A home with nothing in it but a virtual environment with the wheel."""

    home: Path
    beside: Path
    """The wheels of the packages in `plugins/`, which are not installed."""

    def shell(self, line: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a line as a user would who has activated the environment."""
        inherited = {name: value for name, value in os.environ.items() if not self._ours(name)}
        environment = {
            **inherited,
            "HOME": str(self.home),
            "PATH": f"{self.home}/.venv/bin:{inherited['PATH']}",
            "COLUMNS": "100",
            **more,
        }
        return subprocess.run(
            ["/bin/bash", "-c", line],
            env=environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=LONG,
            check=False,
        )

    def run(self, line: str, **more: str) -> str:
        done = self.shell(line, **more)
        assert done.returncode == 0, f"$ {line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @contextmanager
    def started(self, line: str) -> Iterator[None]:
        """While this command runs, in a session of its own."""
        inherited = {name: value for name, value in os.environ.items() if not self._ours(name)}
        path = f"{self.home}/.venv/bin:{inherited['PATH']}"
        server = subprocess.Popen(
            line.split(),
            env={**inherited, "HOME": str(self.home), "PATH": path},
            executable=shutil.which(line.split()[0], path=path),
            cwd=self.home,
            stdout=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            server.terminate()
            server.wait(LONG)

    @staticmethod
    def _ours(name: str) -> bool:
        # A cluster is only there for the commands that are given its variables.
        return name.startswith(("ADAPTOR", "XDG_", "PYTHON", "VIRTUAL_ENV", "SLURM_CONF"))


@pytest.fixture(scope="module")
def empty() -> Iterator[Empty]:
    home = Path(tempfile.mkdtemp(prefix="wheel-"))  # short: a path of a socket has 107 bytes at most
    place = Empty(home, home / "beside")
    try:
        tree = copy_source(home / "tree")
        (home / "made").mkdir()
        place.beside.mkdir()
        wheel = build(tree, home / "made" / "wheel", "--wheel")
        for package in (AGENTS, GRID_ENGINE, MCP):
            made = build(tree / FOLDERS[package], home / "made" / package, "--wheel")
            shutil.copy2(made, place.beside)
        subprocess.run([sys.executable, "-m", "venv", str(home / ".venv")], check=True, timeout=LONG)
        place.run(f"python -m pip install --quiet --disable-pip-version-check {wheel}")
        shutil.rmtree(tree)
        wheel.unlink()
        yield place
    finally:
        place.shell("adaptor daemon stop")
        shutil.rmtree(home, ignore_errors=True)


def test_its_dependencies_fit_and_an_extra_can_be_added_as_the_messages_say(empty: Empty) -> None:
    assert "No broken requirements" in empty.run("python -m pip check")
    assert empty.run("adaptor --version").startswith("adaptor ")
    message = empty.shell("adaptor dashboard").stderr
    found = re.search(r"the live page needs .*: (python -m pip install '.*')", message)
    assert found, message
    assert "Would install" in empty.run(f"{found[1]} --dry-run --disable-pip-version-check")


def test_without_agents_their_commands_say_what_to_install_and_with_it_they_run(empty: Empty) -> None:
    assert "install-hooks" not in empty.run("adaptor site --help")
    for command in ("adaptor reclaim n1", "adaptor site install-hooks hpc"):
        refused = empty.shell(command)
        assert refused.returncode == 2
        assert (
            f"needs {AGENTS}: in a clone of the adaptor, python -m pip install ./{FOLDERS[AGENTS]}"
            in refused.stderr
        )
    (empty.home / "agents.yaml").write_text("sites: {hpc: {backend: slurm, donation: {mode: agent}}}\n")
    assert f"needs {AGENTS}" in empty.shell("adaptor --config agents.yaml status --sites").stderr
    (agents,) = empty.beside.glob("request_adaptor_donation_agents-*")
    empty.run(f"python -m pip install --quiet --disable-pip-version-check {agents}")
    assert "No broken requirements" in empty.run("python -m pip check")
    assert empty.run("adaptor reclaim n1 --runtime ~/none") == "n1: not in use\n"
    hooks = empty.run("adaptor --config agents.yaml site install-hooks hpc")
    assert f"{empty.home}/.venv/bin/python -I -m adaptor_donation_agents.reclaim" in hooks


def test_without_grid_engine_and_mcp_it_says_what_to_install_and_its_extras_bring_them(empty: Empty) -> None:
    (empty.home / "cell.yaml").write_text("sites: {hpc: {backend: gridengine}}\n")
    for command, package in (
        ("adaptor --config cell.yaml site check", GRID_ENGINE),
        ("adaptor mcp keys", MCP),
    ):
        refused = empty.shell(command)
        assert refused.returncode == 2
        assert f"needs {package}: in a clone of the adaptor, python -m pip install ./{FOLDERS[package]}" in (
            refused.stderr
        )
    assert f"needs {GRID_ENGINE}" in empty.shell("adaptor site init", SGE_ROOT="/opt/sge").stderr
    extras = f"--find-links {empty.beside} 'request-adaptor[gridengine,mcp]'"
    empty.run(f"python -m pip install --quiet --disable-pip-version-check {extras}")
    assert "No broken requirements" in empty.run("python -m pip check")
    assert "no keys" in empty.run("adaptor daemon start && adaptor mcp keys && adaptor daemon stop")
    assert "qconf: cannot be run here" in empty.shell("adaptor --config cell.yaml site check").stdout


def test_the_live_page_is_served_from_the_wheel(empty: Empty) -> None:
    empty.run("python -m pip install --quiet --disable-pip-version-check 'request-adaptor[web]'")
    assert "No broken requirements" in empty.run("python -m pip check")
    path = empty.home / "page.sock"
    with empty.started(f"adaptor dashboard --no-token --socket {path}"):
        page = _fetched(path, "/")
        assert "<html" in page
        scripts = re.findall(r'<script[^>]* src="([^"]+)"', page)
        assert scripts
        for script in scripts:
            assert _fetched(path, f"/{script}")


def _fetched(path: Path, address: str) -> str:
    """The answer over a unix socket, as soon as there is one."""
    give_up = time.monotonic() + LONG
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(20)
                link.connect(str(path))
                link.sendall(f"GET {address} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
                text = b"".join(iter(lambda: link.recv(65536), b"")).decode()
                assert text.startswith("HTTP/1.1 200"), text[:200]
                return text
        except OSError:
            assert time.monotonic() < give_up, "the page is not served"
            time.sleep(0.2)


@pytest.mark.slurm
def test_the_blocks_of_the_readme_run_as_written(empty: Empty, slurm: ThrowawaySlurm) -> None:
    blocks = console_blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    mine = [block for block in blocks if not block[0].line.startswith(tuple(ELSEWHERE))]
    assert len(mine) < len(blocks)
    on_a_cluster = False
    for block in mine:
        if not on_a_cluster and any("site init" in command.line for command in block):
            empty.shell("adaptor daemon stop")  # the cluster's login node is another machine
            on_a_cluster = True
        for command in block:
            printed = empty.run(command.line, **(slurm.env if on_a_cluster else {}))
            _compare(command, printed)
    assert on_a_cluster
    bags = empty.run("adaptor results all --stdout")
    assert bags.count("hello from task") == 40
    assert '"done": 20' in empty.run("adaptor status --json")


def _compare(command: Command, printed: str) -> None:
    """What the page shows of a bag's number and its tasks' output is what is printed."""
    exact = [line for line in command.shown if re.match(r"bag \d+: \d+ tasks|==> |hello ", line)]
    assert [line for line in exact if line not in printed] == []
