"""Options of a bag: one declaration serves the command line, bag files, the daemon's checks and the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import click
import msgspec
import pytest

from adaptor import api
from adaptor.bag_spec import AtLeast1, BagSpec, Option
from adaptor.bagfile.options import OPTIONS, named_in, options_of, parse_option
from adaptor.cli.bags.submit import submit
from adaptor.guard_rails import EarlySignal, MostFails, TimeLimit
from adaptor.resources import TaskGpus

DOCS = Path(__file__).parents[2] / "docs" / "bags.md"


def row(option: Option) -> str:
    return f"| `{option.key}` | {option.default} | {option.help} |"


def test_a_row_of_the_docs_is_as_the_declaration_says() -> None:
    rows = {f"`{option.key}`": row(option) for option in OPTIONS}
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    shown = [line for line in lines if line.split(" ")[:1] == ["|"] and line.split(" ")[1] in rows]
    assert len(shown) > 10
    assert shown == [rows[line.split(" ")[1]] for line in shown]


def test_the_command_line_has_every_option_with_its_help_and_default() -> None:
    known = {each.opts[0]: each for each in submit.params if isinstance(each, click.Option)}
    for option in OPTIONS:
        found = known[f"--{option.key}"]
        assert found.name == option.field
        assert option.help[1:] in str(found.help)
        assert f"(default: {option.default})" in str(found.help)


def test_keys_and_fields_are_unique() -> None:
    keys = [key for option in OPTIONS for key in {option.key, option.field}]
    assert len(set(keys)) == len(keys)
    assert len({option.field for option in OPTIONS}) == len(OPTIONS)


class Example(msgspec.Struct):
    depth: Annotated[AtLeast1, Option("how deep")] = 2
    colour: Annotated[Literal["red", "blue"] | None, Option("which colour")] = None
    other: int = 5


def test_a_declaration_says_all() -> None:
    depth, colour = options_of(Example)
    assert (depth.key, depth.field, depth.default, depth.help) == ("depth", "depth", "2", "how deep")
    assert (colour.default, colour.kind.words) == ("none", ("red", "blue"))
    assert depth.kind.parse("3", 0.0) == 3
    with pytest.raises(ValueError, match="'0' is not an integer of 1 or more"):
        depth.kind.parse("0", 0.0)
    with pytest.raises(ValueError, match="'green' is not one of red, blue"):
        colour.kind.parse("green", 0.0)


def test_an_option_whose_type_says_too_little_needs_a_kind() -> None:
    class Vague(msgspec.Struct):
        what: Annotated[str, Option("anything")] = ""

    with pytest.raises(TypeError, match="needs a kind"):
        list(options_of(Vague))


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("mem", "2K", ("memory", 2048)),
        ("mem", "auto", ("memory", "auto")),
        ("kind", "night run", ("kind", "night run")),
        ("gpus", "2", ("gpus", TaskGpus(2))),
        ("gpus", "0.5", ("gpus", TaskGpus(0.5))),
        ("gpus", ".25", ("gpus", TaskGpus(0.25))),
        ("gpus", "a100:1", ("gpus", TaskGpus(1, "a100"))),
        ("gpus", "1g.10gb:2", ("gpus", TaskGpus(2, "1g.10gb"))),
        ("gpus", "0", ("gpus", None)),
        ("nodes", "2", ("nodes", 2)),
        ("bind", "no", ("bind", "no")),
        ("on-oom", "2x", ("on_oom", 2.0)),
        ("on_oom", "1.5", ("on_oom", 1.5)),
        ("max-lost", "0", ("max_lost", 0)),
        ("max_lost", "5", ("max_lost", 5)),
        ("site", "a, b", ("sites", ("a", "b"))),
        ("container", "image.sif", ("container", "image.sif")),
        ("stage", ".venv, data,.venv", ("stage", (".venv", "data"))),
        ("sites", "a", ("sites", ("a",))),
        ("deadline", "1h", ("deadline", 4600.0)),
        ("budget", "2.5", ("budget", 2.5)),
        ("prefer", "cheap", ("prefer", "cheap")),
        ("time", "10m", ("time", 600.0)),
        ("timeout", "1h 30m", ("timeout", TimeLimit(seconds=5400.0))),
        ("timeout", "300%", ("timeout", TimeLimit(part=3.0))),
        ("max-fails", "10", ("max_fails", MostFails(tasks=10))),
        ("max_fails", "2.5 %", ("max_fails", MostFails(share=0.025))),
        ("max-running", "50", ("max_running", 50)),
        ("priority", "-3", ("priority", -3)),
        ("requeue-on", "75, 85", ("requeue_on", (75, 85))),
        ("signal", "USR1@120", ("signal", EarlySignal("SIGUSR1", 120.0))),
        ("signal", "sigterm@2m", ("signal", EarlySignal("SIGTERM", 120.0))),
    ],
)
def test_a_value_by_its_key(key: str, text: str, value: tuple[str, object]) -> None:
    assert parse_option(key, text, now=1000.0) == value


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("time", "0", "above 0"),
        ("mem", "Auto", "not a size"),
        ("kind", " ", "not a name"),
        ("timeout", "50%", "write 100% or more"),
        ("timeout", "soon", "not a duration"),
        ("max-fails", "0", "1 or more"),
        ("max-fails", "0%", "more than 0%"),
        ("max-fails", "101%", "at most 100%"),
        ("max-running", "0", "1 or more"),
        ("priority", "high", "not an integer"),
        ("requeue-on", "0", "1 or more"),
        ("requeue-on", "75,127", "cannot run a command"),
        ("requeue-on", "256", "more than 255"),
        ("signal", "USR1", "how long before the end"),
        ("signal", "KILL@10", "not one of the signals"),
        ("signal", "USR1@soon", "not a duration"),
    ],
)
def test_what_is_no_guard_rail(key: str, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{key}: .*{words}"):
        parse_option(key, text, now=0.0)


@pytest.mark.parametrize(
    "text", ["", "a100", "a100:", ":1", "-1", "1.5", "0.7", "0.001", "1e3", "a b:1", "7:1", "99999"]
)
def test_what_is_no_number_of_gpus(text: str) -> None:
    with pytest.raises(ValueError, match=r"^gpus: .* write .*0\.5"):
        parse_option("gpus", text, now=0.0)


@pytest.mark.parametrize(
    "change",
    [
        {"cpus": 0},
        {"nodes": 0},
        {"gpus": {"count": 0.7}},
        {"gpus": {"count": -1}},
        {"retries": -1},
        {"requeue_on": [256]},
        {"max_fails": {"share": 2.0}},
        {"max_running": 0},
        {"prefer": "dear"},
        {"allocation": "x"},
    ],
)
def test_the_daemon_refuses_what_the_declaration_excludes(change: dict[str, object]) -> None:
    spec = BagSpec(name="b", cwd="/", output="/o", environment={})
    asked = api.Open("key", msgspec.structs.replace(spec, **change))
    with pytest.raises(msgspec.ValidationError, match="spec"):
        api.decode_question(api.encode_question(asked))


def test_an_item_of_a_list_may_have_a_comma() -> None:
    assert parse_option("stage", r"a\,b, c,d\,", 0.0) == ("stage", ("a,b", "c", "d,"))
    assert parse_option("notify", r"@a\,b,mail", 0.0) == ("notify", ("@a,b", "mail"))


@pytest.mark.parametrize("name", ["7", "1-10", " 3, 5", "2026-11-30", "all", "last", "recent"])
def test_a_bag_gets_no_name_that_commands_read_in_another_way(name: str) -> None:
    with pytest.raises(ValueError, match=r"^name: .*selects other bags in commands; add a word"):
        parse_option("name", name, 0.0)
    assert parse_option("name", f"bag-{name.strip()}", 0.0) == ("name", f"bag-{name.strip()}")
    assert parse_option("kind", name, 0.0) == ("kind", name)


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("no node can run these tasks: here: each needs 99 processors; ask for fewer cpus", ["cpus"]),
        ("such a node has 3.9G; ask for less memory", ["memory"]),
        ("each needs 1 GPU on one node, and the site has no GPUs", ["gpus"]),
        ("--timeout 1m would end tasks that take the 2m of --time: write longer cpus", ["time", "timeout"]),
        ("a task takes its --timeout-x", []),
        ("there is no bag 7", []),
    ],
)
def test_the_options_that_a_message_names(message: str, named: list[str]) -> None:
    assert sorted(named_in(message, ("cpus", "memory", "gpus", "time", "timeout"))) == named
