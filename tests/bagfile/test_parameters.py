"""Parameters that go together, and tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.bagfile.template import expand, read_axes, read_sources
from adaptor.errors import UsageError


def test_parameters_that_go_together() -> None:
    axes = read_axes(["a=1:2", "+b=x,y", "c=7,8"])
    assert [task.command for task in expand("{a}{b}{c}", axes)] == ["1x7", "1x8", "2y7", "2y8"]
    assert expand("{a}{b}{c}", axes)[0].name == "a=1 b=x c=7"


def test_a_table_is_a_task_for_each_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('\ufeffscene,frame,note\n"a, b",1,x\n\nc,2,"two ""words"""\n')
    axes = read_axes(["+part=i,ii", "size=S,L"], str(path))
    commands = [task.command for task in expand("r {scene} {frame} {part} {size}", axes)]
    assert commands == ["r 'a, b' 1 i S", "r 'a, b' 1 i L", "r c 2 ii S", "r c 2 ii L"]
    tabs = tmp_path / "rows.tsv"
    tabs.write_text("a\tb\n1\t2,3\n")
    assert [task.command for task in expand("{b}", read_axes([], str(tabs)))] == ["2,3"]


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        (["+a=1"], "no parameter before it"),
        (["a=1:3", "+b=1:2"], "2 values for 3 of a"),
        (["a=1", "+a=2"], "duplicate --param a"),
        (["a=1", "+=2"], "write NAME=VALUES"),
    ],
)
def test_bad_parameters(parameters: list[str], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_axes(parameters)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n1,2\n3\n", "rows.csv:3: 1 values in a table of 2 columns"),
        ("a,b\n", "a row for each task"),
        ("", "a row for each task"),
        ("a,a\n1,2\n", "a name of its own"),
        ("a,\n1,2\n", "a name of its own"),
        ('a\n"1\n', "--csv: "),
        ("a\n\0\n", "NUL"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_axes([], str(path))
    assert problem in str(caught.value)


def test_a_parameter_that_is_in_the_table_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a\n1\n")
    with pytest.raises(UsageError, match="duplicate --param a"):
        read_axes(["a=1"], str(path))
    with pytest.raises(UsageError, match=r"no parameter for \{b\}"):
        expand("{b}", read_axes([], str(path)))


def commands(template: str, *words: str, per_task: int = 1) -> list[str]:
    tasks = expand(template, read_sources(words, per_task), as_parallel=True)
    return [str(task.command) for task in tasks]


def test_sources_as_gnu_parallel_has_them(tmp_path: Path) -> None:
    assert commands("gzip -k", ":::", "a", "b c") == ["gzip -k a", "gzip -k 'b c'"]
    assert commands("do {2} {1}", ":::", "a", "b", ":::", "1", "2") == [
        "do 1 a",
        "do 2 a",
        "do 1 b",
        "do 2 b",
    ]
    assert commands("do", ":::", "a", "b", ":::+", "1", "2") == ["do a 1", "do b 2"]
    assert commands("awk '{print $1}' {} > {.}.txt", ":::", "x.csv") == ["awk '{print $1}' x.csv > x.txt"]
    assert commands("${HOME}/do {{}", ":::", "x") == ["${HOME}/do {{} x"], "braces that it does not know stay"
    file = tmp_path / "values"
    file.write_text("1\r\n\n2\n")
    assert commands("do", "::::", str(file)) == ["do 1", "do 2"]
    assert commands("cmp {1} {2}", ":::", "a", "b", "c", per_task=2) == ["cmp a b", "cmp c ''"]
    assert [task.name for task in expand("do", read_sources([":::", "a b"]), as_parallel=True)] == ["a b"]


@pytest.mark.parametrize(
    ("words", "per_task", "problem"),
    [
        ([":::"], 1, "behind ':::': no values"),
        ([":::", "a", ":::+", "1", "2"], 1, "behind ':::+': 2 values for 1 of 1"),
        (["::::", "/nowhere"], 1, "behind '::::': /nowhere: cannot be read"),
        ([":::", "a", ":::", "b"], 2, "-N 2: for one list"),
        ([":::", "a\0"], 1, "NUL"),
    ],
)
def test_bad_sources(words: list[str], per_task: int, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_sources(words, per_task)
    assert problem in str(caught.value)
