"""What holds no shell lines is read as what it is, or refused with the way out."""

from __future__ import annotations

import pytest

from adaptor.api import TaskInput
from adaptor.bagfile.parse import parse_bag
from adaptor.errors import BagFileError


@pytest.mark.parametrize("path", ["-", "tasks.txt", "tasks"])
def test_json_lines_are_read_as_such_under_any_name(path: str) -> None:
    data = b'\n{"argv": ["echo", "a"]}\n{"command": "echo b"}\n'
    assert parse_bag(data, path, 0.0).tasks == [TaskInput(["echo", "a"]), TaskInput("echo b")]


def test_a_mistake_in_json_lines_is_one_of_json_lines() -> None:
    with pytest.raises(BagFileError, match=r"^standard input:1: unknown key 'comand'"):
        parse_bag(b'{"comand": "echo b"}\n', "-", 0.0)
    with pytest.raises(BagFileError, match=r"^standard input:1: "):
        parse_bag(b'{"argv": ["echo"}\n', "-", 0.0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('["echo", "a"]\n', "tasks.txt: holds one JSON value"),
        ('[\n {"argv": ["echo"]},\n {"argv": ["ls"]}\n]\n', "tasks.txt: holds one JSON value"),
        ('{\n "tasks": []\n}\n', "tasks.txt: holds one JSON value"),
        ('#ADAPTOR cpus=2\n\n{"argv": ["echo"]}\n', 'tasks.txt:3: \'{"argv": ["echo"]}\' is JSON'),
        ("[\n 1,\n", "tasks.txt:1: '[' is JSON"),
        ("scene,frame\nforest,1\nriver,2\n", "tasks.txt: holds a table"),
        ('"scene","frame"\n"a b",1\n', "tasks.txt: holds a table"),
        ("---\n- echo a\n", "tasks.txt:1: '---' begins with '---', which is no command"),
        ("- echo a\n- echo b\n", "tasks.txt:1: '- echo a' begins with '-', which is no command"),
        ("tasks:\n  - echo a\n", "tasks.txt:1: 'tasks:' begins with 'tasks:', which is no command"),
        ("echo a\n$ echo b\n", "tasks.txt:2: '$ echo b' begins with '$', which is no command"),
    ],
)
def test_files_that_hold_no_shell_lines_are_refused(text: str, problem: str) -> None:
    with pytest.raises(BagFileError) as refused:
        parse_bag(text.encode(), "tasks.txt", 0.0)
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize(
    "line",
    [
        "[ -f x ] && cat x",
        "[ 1 ]",
        "[[ -f x ]] && cat x",
        '{ "./prog"; echo b; }',
        "{a,b}/prog",
        "echo a, b",
        ": > file",
        "$HOME/bin/prog x",
        "prog.v1,2 x",
        "./a:b c",
        "-x",
        "$(cat command)",
    ],
)
def test_shell_lines_that_look_alike_are_tasks(line: str) -> None:
    assert parse_bag(f"{line}\n".encode(), "tasks.txt", 0.0).tasks == [TaskInput(line)]
    assert len(parse_bag(f"{line}\n./other\n".encode(), "tasks.txt", 0.0).tasks) == 2
