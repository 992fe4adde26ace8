"""Tasks from a template and its parameters."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.bagfile.template import Axis, expand, parse_parameter
from adaptor.errors import UsageError

values = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
names = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)


def axes(parameters: dict[str, list[str]]) -> list[Axis]:
    return [Axis((name,), [(value,) for value in values]) for name, values in parameters.items()]


@given(st.dictionaries(names, st.lists(values, min_size=1, max_size=4), min_size=1, max_size=3))
def test_a_shell_reads_the_values_back_in_every_combination(parameters: dict[str, list[str]]) -> None:
    template = " ".join(f"{{{name}}}" for name in parameters)
    tasks = expand(template, axes(parameters))
    assert len(tasks) == math.prod(map(len, parameters.values()))
    read = [shlex.split(str(task.command)) for task in tasks]
    last = list(parameters.values())[-1]
    assert [words[-1] for words in read[: len(last)]] == last
    assert [words[0] for words in read[:: len(read) // len(next(iter(parameters.values())))]] == next(
        iter(parameters.values())
    )


def test_a_field_may_stand_anywhere_and_more_than_once() -> None:
    tasks = expand("echo {{{a}}} -o'x y'{a}.png", axes({"a": ["1", "b c"]}))
    assert [task.command for task in tasks] == ["echo {1} -o'x y'1.png", "echo {'b c'} -o'x y''b c'.png"]
    assert [task.name for task in tasks] == ["a=1", "a=b c"]


def test_a_template_without_parameters_is_one_task() -> None:
    assert [task.command for task in expand("echo {{}}", [])] == ["echo {}"]


@pytest.mark.parametrize(
    ("field", "path", "part"),
    [
        ("{f}", "runs/a.b/c.tar.gz", "runs/a.b/c.tar.gz"),
        ("{f.}", "runs/a.b/c.tar.gz", "runs/a.b/c.tar"),
        ("{f/}", "runs/a.b/c.tar.gz", "c.tar.gz"),
        ("{f//}", "runs/a.b/c.tar.gz", "runs/a.b"),
        ("{f/.}", "runs/a.b/c.tar.gz", "c.tar"),
        ("{f.}", "a.b/c", "a.b/c"),
        ("{f//}", "c", "."),
        ("{1/}", "x/y z", "'y z'"),
        ("{}", "x", "x"),
        ("{.}", "x.y", "x"),
    ],
)
def test_a_field_may_be_a_part_of_a_path(field: str, path: str, part: str) -> None:
    assert [task.command for task in expand(f"do {field}", axes({"f": [path]}))] == [f"do {part}"]


def test_values_by_their_place_and_all_at_once() -> None:
    both = axes({"a": ["1", "2"], "b": ["x y"]})
    assert [task.command for task in expand("{2}-{1}", both)] == ["'x y'-1", "'x y'-2"]
    assert [task.command for task in expand("do {}", both)] == ["do 1 'x y'", "do 2 'x y'"]
    with pytest.raises(UsageError, match=r"no parameter for \{3\}"):
        expand("{3}", both)
    with pytest.raises(UsageError, match=r"\{f/\} is inside"):
        expand("'{f/}'", axes({"f": ["x y/z", "x/y z"]}))
    assert expand("'{f/}'", axes({"f": ["x y/z"]}))[0].command == "'z'", "what is shown needs no quotes"


@pytest.mark.parametrize(
    ("template", "parameters", "problem"),
    [
        ("echo {frme}", {"frame": ["1"]}, "no parameter for {frme} (did you mean {frame}?"),
        ("echo {}", {}, "no parameter for {}"),
        ("echo ${HOME}", {}, "write '{{' for a literal brace"),
        ("echo {a", {"a": ["1"]}, "unbalanced '{'; write '{{'"),
        ("echo a}", {}, "unbalanced '}'; write '}}'"),
        ("echo {a}", {"a": ["1"], "b": ["2"]}, "--param b: not used"),
        ("echo '{a}'", {"a": ["b c"]}, "{a} is inside ' … '"),
        ('echo "x\\" {a}"', {"a": ["$(rm)"]}, '{a} is inside " … "'),
        ("  ", {}, "must not be empty"),
        ("a\0", {}, "NUL"),
        ("a\udcff", {}, "not UTF-8"),
        ("{a}{b}", {"a": ["1"] * 10_000, "b": ["1"] * 10_000}, "100,000,000 combinations are more than"),
    ],
)
def test_a_bad_template(template: str, parameters: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        expand(template, axes(parameters))
    assert problem in str(caught.value)


def test_quotes_around_plain_values_are_fine() -> None:
    assert [task.command for task in expand("echo '{a}' \\' {a}", axes({"a": ["1"]}))] == ["echo '1' \\' 1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1:4", ["1", "2", "3", "4"]),
        ("a=1:8:3", ["1", "4", "7"]),
        ("a=3:1:-1", ["3", "2", "1"]),
        ("a=-1:1", ["-1", "0", "1"]),
        ("a=008:011", ["008", "009", "010", "011"]),
        ("a=0.1:0.5:0.2", ["0.1", "0.3", "0.5"]),
        ("a=5:5", ["5"]),
        ("a=x,y,x", ["x", "y", "x"]),
        ("a=1:3,9,b:c", ["1", "2", "3", "9", "b:c"]),
        ("a=k=v", ["k=v"]),
        ("a=x,", ["x", ""]),
    ],
)
def test_parameters(text: str, expected: list[str]) -> None:
    assert parse_parameter(text) == ("a", expected)


@given(st.integers(-500, 500), st.integers(-500, 500), st.integers(-50, 50).filter(bool))
def test_ranges_are_those_of_seq(first: int, last: int, step: int) -> None:
    expected = [str(n) for n in range(first, last + (1 if step > 0 else -1), step)]
    text = f"n={first}:{last}:{step}"
    if expected:
        assert parse_parameter(text) == ("n", expected)
    else:
        with pytest.raises(UsageError, match="empty range"):
            parse_parameter(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("frame", "write NAME=VALUES"),
        ("=1", "write NAME=VALUES"),
        ("a b=1", "write NAME=VALUES"),
        ("a=", "no value"),
        ("a=1:3:0", "empty range"),
        ("a=3:1", "empty range"),
        ("a=1:99999999999999", "more than 10,000,000 values"),
        ("a=@/no/such/file", "cannot be read: No such file"),
        ("a=\udcff", "not UTF-8"),
    ],
)
def test_bad_parameters(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_parameter(text)
    assert problem in str(caught.value)


def test_values_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "values"
    path.write_bytes(b"one\r\n\ntwo words\n1:3,4\n")
    assert parse_parameter(f"a=@{path}") == ("a", ["one", "two words", "1:3,4"])
    path.write_bytes(b"\n\n")
    with pytest.raises(UsageError, match="contains no value"):
        parse_parameter(f"a=@{path}")
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="values:1: byte 0xff is not UTF-8"):
        parse_parameter(f"a=@{path}")
