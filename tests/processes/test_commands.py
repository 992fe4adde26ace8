"""What lies in the current folder is no part of our programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from adaptor.processes import commands
from adaptor.processes.commands import bare_script, code_command, isolated_command, module_command
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


@pytest.mark.parametrize(
    ("folder", "begins"), [("short", "#!{python} -IS\n"), ("a b", "#!/bin/sh\n"), ("x" * 120, "#!/bin/sh\n")]
)
def test_a_file_runs_the_main_of_a_module(
    home: Path, monkeypatch: pytest.MonkeyPatch, folder: str, begins: str
) -> None:
    """Without a shell before it, unless the path of Python is one that a first line cannot have."""
    (home / "lib").mkdir()
    (home / "lib" / "ours.py").write_text("import sys\ndef main():\n    print(sys.argv[1:])\n")
    monkeypatch.setattr(commands, "_ROOT", str(home / "lib"))
    root = Path("/tmp") / f"adaptor-{os.getpid()}"
    python = root / folder / "python"
    monkeypatch.setattr(sys, "executable", str(python))
    python.parent.mkdir(parents=True)
    try:
        python.symlink_to(os.path.realpath("/proc/self/exe"))
        text = bare_script("ours", "/no folder", "sinfo")
        assert text.startswith(begins.format(python=python))
        program = home / "sinfo"
        program.write_text(text)
        program.chmod(0o700)
        done = run([str(program), "a b"], home)
    finally:
        shutil.rmtree(root)
    assert done.stdout == "['/no folder', 'sinfo', 'a b']\n", done.stderr


def test_what_a_user_has_on_the_path_is_found(home: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "of_the_user.py").write_text("print('found')")
    words = module_command(sys.executable, "of_the_user")
    assert run(["/usr/bin/env", f"PYTHONPATH={tmp_path}/own", *words], home).stdout == "found\n"
