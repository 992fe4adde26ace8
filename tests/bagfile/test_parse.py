"""Bags from files: what is read, and that every slip is told with its line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.api import TaskInput
from adaptor.bagfile.parse import (
    BagFile,
    decode,
    parse_bag,
    parse_json_lines,
    parse_shell_lines,
    read_data,
    script_part,
)
from adaptor.errors import BagFileError
from adaptor.resources import OwnNeeds

FIXTURES = Path(__file__).parents[2] / "fixtures" / "bags"

NOW = 1_000_000.0

one_line = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"), min_size=1)
task_lines = one_line.map(str.strip).filter(
    lambda line: line != "" and not line.startswith("#") and script_part(line) is None
)


def read_bag(path: str, now: float, json_lines: bool = False) -> BagFile:
    return parse_bag(read_data(path), path, now, json_lines)


@given(st.lists(task_lines, min_size=1))
def test_every_line_is_a_task_in_order(lines: list[str]) -> None:
    bag = parse_shell_lines(decode("\n".join(lines).encode(), "f"), "f", NOW)
    assert [task.command for task in bag.tasks] == lines


@given(st.lists(task_lines, min_size=1), st.data())
def test_comments_and_blank_lines_change_nothing(lines: list[str], data: st.DataObject) -> None:
    noise = st.sampled_from(["", "   ", "# a comment", "  # indented", "#", "#ADAPTORS are nice"])
    noisy = [text for line in lines for text in (data.draw(noise), line)]
    assert parse_shell_lines("\n".join(noisy), "f", NOW) == parse_shell_lines("\n".join(lines), "f", NOW)


def test_options_of_a_file() -> None:
    first = "#ADAPTOR name='my bag' cpus=2 mem=1.5G"
    second = "  #ADAPTOR retries=0 site=a,b output=out cwd=/tmp replicas=2"
    text = f"{first}\nx\n{second}"
    assert parse_shell_lines(text, "f", NOW).options == {
        "name": "my bag",
        "cpus": 2,
        "memory": 1610612736,
        "retries": 0,
        "replicas": 2,
        "sites": ("a", "b"),
        "cwd": "/tmp",
        "output": "out",
    }


def test_a_deadline_counts_from_the_time_given() -> None:
    assert parse_shell_lines("#ADAPTOR deadline=2h\nx", "f", NOW).options == {"deadline": NOW + 7200}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("#ADAPTOR cpu=2", "unknown option 'cpu' (did you mean 'cpus'?)"),
        ("#ADAPTOR zzz=2", "known are name, cpus"),
        ("#ADAPTOR cpus=0", "cpus: '0' is not an integer of 1 or more"),
        ("#ADAPTOR cpus=two", "cpus: 'two' is not an integer"),
        ("#ADAPTOR cpus=²", "cpus: '²' is not an integer"),
        ("#ADAPTOR retries=-1", "retries: '-1' is not an integer of 0 or more"),
        ("#ADAPTOR mem=much", "mem: 'much' is not a size"),
        ("#ADAPTOR mem=0", "mem: '0' is not a size above 0"),
        ("#ADAPTOR name=", "name: '' is not a name"),
        ("#ADAPTOR name='a\x1b[31mb'", "is not a name"),
        ("#ADAPTOR site=a,,b", "site: '' is not a name"),
        ("#ADAPTOR cwd=", "cwd: an empty text is not a path"),
        ("#ADAPTOR cpus", "'cpus' is not an option; write key=value"),
        ("#ADAPTOR", "#ADAPTOR needs an option"),
        ("#ADAPTOR name='open", "No closing quotation"),
        ("#ADAPTOR cpus=1 cpus=2", "duplicate option 'cpus'"),
        ("#ADAPTOR site=a sites=b", "duplicate option 'sites'"),
    ],
)
def test_a_bad_option_is_told_with_its_line(line: str, problem: str) -> None:
    with pytest.raises(BagFileError) as caught:
        parse_shell_lines(f"true\n\n{line}\n", "tasks.bag", NOW)
    assert str(caught.value).startswith("tasks.bag:3: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize("line", ["for n in range(2): print(n)", "import x", "set = 1", "cd = 1"])
def test_lines_for_another_program_than_a_shell_may_be_anything(line: str) -> None:
    assert parse_shell_lines(line, "f", NOW, "python3").tasks == [TaskInput(line)]
    assert parse_shell_lines(f"#ADAPTOR shell='python3 -u'\n{line}", "f", NOW).tasks == [TaskInput(line)]


def test_the_shell_of_the_command_line_goes_before_that_of_the_file() -> None:
    with pytest.raises(BagFileError, match="that other lines end"):
        parse_shell_lines("#ADAPTOR shell=python3\nfor n in range(2): print(n)", "f", NOW, "bash")


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf"])
def test_bytes_that_no_command_can_hold(prefix: bytes) -> None:
    with pytest.raises(BagFileError, match=r"^f:2: byte 0xff is not UTF-8"):
        decode(prefix + b"echo \xc3\xa9\necho \xff\ntrue", "f")
    with pytest.raises(BagFileError, match=r"^f:3: contains a NUL byte"):
        decode(prefix + b"true\ntrue\nec\0ho", "f")


def test_a_byte_order_mark_and_foreign_line_ends_do_no_harm() -> None:
    bag = parse_shell_lines(decode(b"\xef\xbb\xbf#ADAPTOR cpus=2\r\necho a\r\n", "f"), "f", NOW)
    assert bag == BagFile([TaskInput("echo a")], {"cpus": 2}, {"cpus": 1})


objects = st.fixed_dictionaries(
    {},
    optional={
        "cwd": task_lines,
        "name": one_line,
        "env": st.dictionaries(one_line.filter(lambda key: "=" not in key), one_line),
    },
)
commands = st.one_of(
    st.fixed_dictionaries({"command": task_lines}),
    st.fixed_dictionaries({"argv": st.lists(one_line, min_size=1)}),
)


def test_json_lines_say_what_one_task_needs() -> None:
    rows = [
        '{"command": "a", "cpus": 4, "mem": "2G", "gpus": "a100:1", "nodes": 2, "time": "1h 30m"}',
        '{"command": "b", "mem": "4096M", "gpus": 0.5, "time": 90}',
        "",
        '{"command": "c", "gpus": 0}',
        '{"command": "d"}',
    ]
    found = [(task.needs, task.line) for task in parse_json_lines("\n".join(rows), "f")]
    assert found == [
        (OwnNeeds(cpus=4, memory=2 << 30, gpus=1.0, gpu_type="a100", nodes=2, time=5400.0), 1),
        (OwnNeeds(memory=4 << 30, gpus=0.5, time=90.0), 2),
        (OwnNeeds(gpus=0.0), 4),
        (None, 0),
    ]


def test_a_line_that_no_shell_can_get_is_refused_with_its_number() -> None:
    longest = "x" * 131071
    assert parse_shell_lines(longest, "f", NOW).tasks == [TaskInput(longest)]
    with pytest.raises(BagFileError, match=r"^f:2: 'xxx.* has 131,072 bytes, and Linux takes 131,071"):
        parse_shell_lines(f"true\n{longest}x", "f", NOW)


def test_line_ends_of_old_macs_are_refused() -> None:
    with pytest.raises(BagFileError, match=r"^f:1: holds a carriage return"):
        parse_shell_lines("echo a\recho b\recho c", "f", NOW)
    assert len(parse_shell_lines("echo a\r\necho b\r\n", "f", NOW).tasks) == 2


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ('"cpus": 0', "cpus: needs a whole number of 1 or more"),
        ('"cpus": true', "cpus: needs a whole number, not true or false"),
        ('"cpus": "two"', "cpus: needs a whole number, not text"),
        ('"mem": "much"', "mem: 'much' is not a size"),
        ('"mem": 0', "mem: "),
        ('"gpus": 0.7', "gpus: 0.7 of a GPU is no share"),
        ('"gpus": -1', "gpus: needs a number of 0 or more"),
        ('"gpus": 1e300', "gpus: "),
        ('"time": "soon"', "time: 'soon' is not a duration"),
        ('"time": 0', "time: must be above 0"),
        ('"time": 1e300', "time: "),
        ('"memory": "1G"', "unknown key 'memory'"),
        ('"mem": 4000', "mem: '4000' is a size without a unit: write 4000M (megabytes) or 4000B (bytes)"),
        ('"name": "\\ud800"', "\\ud800 is half of a character"),
        ('"name": "\\ud83d x \\ude00"', "\\ud83d is half of a character"),
        ('"name": "x', "the line ends within the object"),
        (
            f'"name": "{"x" * 131072}"',
            "has 131,072 bytes, and Linux takes 131,071 in one argument or shell line",
        ),
    ],
)
def test_needs_that_nobody_can_mean_name_their_line_and_key(needs: str, message: str) -> None:
    with pytest.raises(BagFileError) as caught:
        parse_json_lines(f'{{"command": "true"}}\n{{"command": "true", {needs}}}', "tasks.jsonl")
    assert str(caught.value).startswith("tasks.jsonl:2: ")
    assert message in str(caught.value)


@given(st.lists(st.tuples(commands, objects)))
def test_json_lines_round_trip(rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
    text = "\n\n".join(json.dumps(command | rest) for command, rest in rows)
    expected = [
        TaskInput(
            command.get("command") or command["argv"], rest.get("name"), rest.get("cwd"), rest.get("env")
        )
        for command, rest in rows
    ]
    assert parse_json_lines(text, "f") == expected


def test_tasks_name_those_after_which_they_run() -> None:
    text = '{"command": "a", "id": "x"}\n{"command": "b", "after": ["x", 0], "after_any": ["x"]}'
    assert parse_json_lines(text, "f") == [
        TaskInput("a", id="x", line=1),
        TaskInput("b", after=("x", 0), after_any=("x",), line=2),
    ]
    more = '{"command": "a", "id": "y", "after": ["x", 7]}'
    assert parse_json_lines(more, "f", more=True) == [TaskInput("a", id="y", after=("x", 7), line=1)]
    with pytest.raises(BagFileError, match=r"^f:2: id: 'y' is that of another task"):
        parse_json_lines(f"{more}\n{more}", "f", more=True)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"argvs": ["a"]}', "unknown key 'argvs' (did you mean 'argv'?)"),
        ('{"zzz": 1}', "unknown key 'zzz' (known are cpus, mem"),
        ('{"argv": ["a"]', "the line ends within the object"),
        ('{"argv": "a b"}', "argv: needs a list, not text"),
        ('{"argv": ["a", 1]}', "argv[1]: needs text"),
        ('{"command": "a", "env": {"A": 1}}', "env[...]: needs text"),
        ('{"command": "a", "env": {"A=B": "c"}}', "'A=B' is not a name of a variable"),
        ('{"command": "a", "env": {"": "c"}}', "'' is not a name of a variable"),
        ('{"command": "a", "argv": ["a"]}', "exactly one of 'argv' and 'command'"),
        ("{}", "exactly one of 'argv' and 'command'"),
        ('{"argv": []}', "must name a program"),
        ('{"argv": [""]}', "must name a program"),
        ('{"command": "  "}', "command: must not be empty"),
        ('{"command": "a", "cwd": ""}', "cwd: must not be empty"),
        ('{"command": "a\\u0000b"}', "NUL"),
        ('{"argv": ["a", "b\\u0000"]}', "NUL"),
        ('{"command": "a", "env": {"A": "\\u0000"}}', "NUL"),
        ('{"command": "\\ud800"}', ""),
        ('{"command": "a"', "the line ends within the object"),
        ('["a"]', "needs a mapping of keys to values, not a list"),
        ("echo hello", "malformed"),
        ('{"command": "a", "id": ""}', "id: must not be empty"),
        ('{"command": "a", "after": ["x"]}', "after: no task has the id 'x'"),
        ('{"command": "a", "after_any": [2]}', "after_any: there is no task 2"),
        ('{"command": "a", "id": "b", "after": ["b"]}', "these tasks wait for each other: 'b' after 'b'"),
        ('{"command": "a", "after": "b"}', "after: needs a list"),
    ],
)
def test_a_bad_object_is_told_with_its_line(line: str, problem: str) -> None:
    with pytest.raises(BagFileError) as caught:
        parse_json_lines('{"command": "true"}\n\n' + line, "tasks.jsonl")
    assert str(caught.value).startswith("tasks.jsonl:3: ")
    assert problem in str(caught.value)


@given(st.binary())
def test_nonsense_is_an_error_of_the_file_or_a_bag(data: bytes) -> None:
    for tasks in (tasks_or_error(data, shell=True), tasks_or_error(data, shell=False)):
        if isinstance(tasks, str):
            assert tasks.startswith("f:")
        else:
            assert msgspec.msgpack.decode(msgspec.msgpack.encode(tasks), type=list[TaskInput]) == tasks


def tasks_or_error(data: bytes, shell: bool) -> list[TaskInput] | str:
    try:
        text = decode(data, "f")
        return parse_shell_lines(text, "f", NOW).tasks if shell else parse_json_lines(text, "f")
    except BagFileError as error:
        return str(error)


def test_the_kind_follows_from_the_name_or_the_option(tmp_path: Path) -> None:
    for name, json_lines in (("a.jsonl", False), ("a.ndjson", False), ("a.txt", True)):
        (tmp_path / name).write_text("true\n")
        with pytest.raises(BagFileError, match=":1: needs a mapping"):
            read_bag(str(tmp_path / name), NOW, json_lines)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"echo a\n#ADAPTOR cpus=x\n")))
    with pytest.raises(BagFileError, match=r"^standard input:2: cpus"):
        read_bag("-", NOW)


@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment\n#ADAPTOR cpus=2\n"])
def test_a_bag_without_tasks_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "empty.bag"
    path.write_text(content)
    with pytest.raises(BagFileError, match="contains no task"):
        read_bag(str(path), NOW)


def test_an_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(BagFileError, match=r"missing: cannot be read: No such file"):
        read_bag(str(tmp_path / "missing"), NOW)
    with pytest.raises(BagFileError, match="cannot be read: Is a directory"):
        read_bag(str(tmp_path), NOW)


def test_the_fixtures_are_bags() -> None:
    assert len(read_bag(str(FIXTURES / "lines.bag"), NOW).tasks) == 4
    assert len(read_bag(str(FIXTURES / "failures.bag"), NOW).tasks) == 6
    assert len(read_bag(str(FIXTURES / "mixed.jsonl"), NOW).tasks) == 3


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("mem=99999999999T", "mem: '99999999999T' is too large for a size"),
        (f"mem={'9' * 5000}", "is a size without a unit"),
        (f"mem={'9' * 5000}M", "is too large for a size"),
        ("retries=99999999999999999999", "retries: '99999999999999999999' is more than 1,000,000,000"),
        (f"cpus={'9' * 5000}", "is more than 1,000,000,000"),
        (f"cpus={'0' * 5000}", "is not an integer of 1 or more"),
        ("deadline=101w101w9999w", "is not a time: write 12h"),
        ("deadline=1e300", "is not a time: write 12h"),
        ("deadline=9999999999999:00", "is not a time: write 12h"),
        ("max-runtime=" + "9" * 400, ""),
    ],
)
def test_a_number_that_nobody_means_is_refused_in_a_short_line(option: str, problem: str) -> None:
    with pytest.raises(BagFileError) as caught:
        parse_shell_lines(f"#ADAPTOR {option}\ntrue", "tasks.bag", 0.0)
    message = str(caught.value)
    assert message.startswith("tasks.bag:1: ")
    assert problem in message
    assert len(message) < 600
