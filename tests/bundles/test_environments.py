"""Paths of what is staged become those of the copy where a task reads, and stay where it may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.bag_spec import StagedItem
from adaptor.bundles.environments import Relocation, environment_at
from tests.bundles.staged import environment

ITEMS = (
    StagedItem("/home/me/.venv", ".venv", "/shared/me/.venv", "venv"),
    StagedItem("/home/me/src", "src", "/shared/me/src"),
)
ROOT = "/tmp/adaptor-7/abc"
MOVED = Relocation(ITEMS, ROOT)


def test_what_is_an_environment(tmp_path: Path) -> None:
    assert environment_at(str(environment(tmp_path / ".venv"))) == "venv"
    assert environment_at(str(tmp_path)) == ""


@pytest.mark.parametrize(
    ("path", "copy"),
    [
        ("/home/me/.venv", f"{ROOT}/.venv"),
        ("/shared/me/.venv/bin/python", f"{ROOT}/.venv/bin/python"),
        ("/home/me/.venv-old/bin", "/home/me/.venv-old/bin"),
        ("/home/me", "/home/me"),
        ("src/fit.py", "src/fit.py"),
        ("", ""),
    ],
)
def test_a_path(path: str, copy: str) -> None:
    assert MOVED.path(path) == copy


def test_variables_of_a_task() -> None:
    given = {
        "PATH": "/home/me/.venv/bin:/usr/bin",
        "PYTHONPATH": "/home/me/src:/home/me/more",
        "OUT": "/home/me/src/out",
        "PYTHONHOME": "/usr",
    }
    assert MOVED.variables(given) == {
        "PATH": f"{ROOT}/.venv/bin:/usr/bin",
        "PYTHONPATH": f"{ROOT}/src:/home/me/more",
        "OUT": "/home/me/src/out",
        "VIRTUAL_ENV": f"{ROOT}/.venv",
        "ADAPTOR_STAGE": ROOT,
    }
    conda = Relocation([StagedItem("/c", "c", "/c", "conda")], ROOT).variables({"PATH": "/usr/bin"})
    assert conda == {"PATH": f"{ROOT}/c/bin:/usr/bin", "CONDA_PREFIX": f"{ROOT}/c", "ADAPTOR_STAGE": ROOT}


@pytest.mark.parametrize(
    ("line", "moved"),
    [
        (".venv/bin/python src/fit.py src/out", f"{ROOT}/.venv/bin/python {ROOT}/src/fit.py src/out"),
        ("/home/me/.venv/bin/tool > src/a", f"{ROOT}/.venv/bin/tool > src/a"),
        ("python src/fit.py", f"python {ROOT}/src/fit.py"),
        ("python ../me/src/fit.py;", f"python {ROOT}/src/fit.py;"),
        ("source .venv/bin/activate && python x", f"source {ROOT}/.venv/bin/activate && python x"),
        (". .venv/bin/activate; true", f". {ROOT}/.venv/bin/activate; true"),
        ("python fit.py", "python fit.py"),
        ("cat src/data", "cat src/data"),
        ("cd src && ./run", "cd src && ./run"),
        ("A=1 .venv/bin/python", f"A=1 {ROOT}/.venv/bin/python"),
        ("A='b c' B=\"$C d\" .venv/bin/python", f"A='b c' B=\"$C d\" {ROOT}/.venv/bin/python"),
        ("env A=src/b .venv/bin/python src/fit.py", f"env A=src/b {ROOT}/.venv/bin/python {ROOT}/src/fit.py"),
        ("exec .venv/bin/python", f"exec {ROOT}/.venv/bin/python"),
        ("A=1; .venv/bin/python", "A=1; .venv/bin/python"),
        ("A=$(date) .venv/bin/python", "A=$(date) .venv/bin/python"),
        (".venv/bin/python -u src/fit.py", f"{ROOT}/.venv/bin/python -u {ROOT}/src/fit.py"),
        (
            "python3.11 -W ignore -Xdev src/fit.py src/a.py",
            f"python3.11 -W ignore -Xdev {ROOT}/src/fit.py src/a.py",
        ),
        (".venv/bin/python -m fit src/fit.py", f"{ROOT}/.venv/bin/python -m fit src/fit.py"),
        ("rm -f src/fit.py", "rm -f src/fit.py"),
        ("'.venv/bin/python' src/fit.py", f"'{ROOT}/.venv/bin/python' {ROOT}/src/fit.py"),
        ("src/run.sh", f"{ROOT}/src/run.sh"),
        ("src/$x", "src/$x"),
        ("", ""),
    ],
)
def test_the_first_words_of_a_line(line: str, moved: str) -> None:
    assert MOVED.line(line, "/home/me") == moved


def test_the_first_words_of_a_command() -> None:
    assert MOVED.words([".venv/bin/python", "src/fit.py", "src/b.py"], "/home/me") == [
        f"{ROOT}/.venv/bin/python",
        f"{ROOT}/src/fit.py",
        "src/b.py",
    ]
    assert MOVED.words(["src/run", "src/data"], "/home/me") == [f"{ROOT}/src/run", "src/data"]
    words = ["env", "A=1", ".venv/bin/python", "-u", "src/fit.py", "src/fit.py"]
    moved = ["env", "A=1", f"{ROOT}/.venv/bin/python", "-u", f"{ROOT}/src/fit.py", "src/fit.py"]
    assert MOVED.words(words, "/home/me") == moved
    assert MOVED.words(["A=1"], "/home/me") == ["A=1"]
    assert MOVED.words([], "/") == []


def test_text_of_an_environment_names_the_copies() -> None:
    text = b"/home/me/src\n/shared/me/.venv/bin:/home/me/.venv-old"
    moved = f"{ROOT}/src\n{ROOT}/.venv/bin:/home/me/.venv-old".encode()
    assert MOVED.content(".venv/lib/x.pth", text) == moved
    assert MOVED.content("src/x.txt", text) == text, "no installer has written it"
    longer = b"/scratch/home/me/.venv/lib"
    assert MOVED.content(".venv/x.txt", longer) == longer, "the end of another path"
    own = Relocation([StagedItem("/env", "env", "/env", "venv")], ROOT)
    lines = b"#!/usr/bin/env python\n#!/env/bin/python"
    assert own.content("env/bin/tool", lines) == f"#!/usr/bin/env python\n#!{ROOT}/env/bin/python".encode()
    assert MOVED.content(".venv/lib/x.so", b"\0" + text) == b"\0" + text
