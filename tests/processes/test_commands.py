"""What lies in the current folder is no part of our programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from adaptor.processes.commands import code_command, isolated_command, module_command
from tests.living import run_text

SHADOWED = ("json", "signal", "struct", "ctypes", "string", "numbers", "socket", "runpy", "adaptor")
MODULES = [
    "adaptor.daemon",
    "adaptor_donation_agents.keeper",
    "adaptor_donation_agents.reclaim",
    "adaptor.protocol.relay",
    "adaptor.protocol.files.remote",
    "adaptor.worker",
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with modules called as some of the library's, each of which tells that it was run."""
    for name in SHADOWED:
        (tmp_path / f"{name}.py").write_text("print('run from the current folder')\nraise SystemExit(9)\n")
    return tmp_path


def run(words: Sequence[str], home: Path) -> subprocess.CompletedProcess[str]:
    return run_text(
        words,
        cwd=home,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        errors="replace",
        timeout=120,
    )


@pytest.mark.parametrize("command", [module_command, isolated_command])
@pytest.mark.parametrize("module", MODULES)
def test_no_module_of_the_current_folder_is_run(
    home: Path, module: str, command: Callable[..., tuple[str, ...]]
) -> None:
    done = run(command(sys.executable, module, "--no-such-option"), home)
    assert "run from the current folder" not in done.stdout + done.stderr
    assert done.returncode != 9


def test_the_way_that_python_offers_would_run_it(home: Path) -> None:
    assert run((sys.executable, "-m", "adaptor_donation_agents.keeper"), home).returncode == 9


def test_a_module_gets_its_arguments_and_is_main(home: Path) -> None:
    done = run(module_command(sys.executable, "calendar", "2026", "2"), home)
    assert "February 2026" in done.stdout


def test_code_gets_its_arguments(home: Path) -> None:
    code = "import json\nfor word in sys.argv[1:]:\n    print(json.dumps(word))\n"
    assert run(code_command(sys.executable, code, "a b", "$c"), home).stdout == '"a b"\n"$c"\n'


def test_what_a_user_has_on_the_path_is_found(home: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "of_the_user.py").write_text("print('found')")
    words = module_command(sys.executable, "of_the_user")
    assert run(["/usr/bin/env", f"PYTHONPATH={tmp_path}/own", *words], home).stdout == "found\n"
