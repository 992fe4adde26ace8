"""Options of a bag: one declaration serves the command line, bag files, the daemon's checks and the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import click
import msgspec
import pytest

from adaptor.bag_spec import AtLeast1, BagSpec, Option
from adaptor.bagfile.options import OPTIONS, BagOption, options_of, parse_option
from adaptor.cli.daily.submit import submit
from adaptor.protocol import control

DOCS = Path(__file__).parents[2] / "docs" / "bags.md"


def row(option: BagOption) -> str:
    return f"| `{option.key}` | {option.default} | {option.help} |"


def test_the_docs_have_the_table_of_the_options() -> None:
    table = "\n".join(["| option | default | meaning |", "|---|---|---|", *map(row, OPTIONS)])
    assert f"\n\n{table}\n\n" in DOCS.read_text(), f"the table of docs/bags.md must be:\n{table}"


def test_the_command_line_has_every_option_with_its_help_and_default() -> None:
    known = {each.opts[0]: each for each in submit.params if isinstance(each, click.Option)}
    for option in OPTIONS:
        found = known[f"--{option.key}"]
        assert found.name == option.field
        assert option.help[1:] in str(found.help)
        assert f"(default: {option.default})" in str(found.help)


def test_keys_and_fields_are_unique() -> None:
    keys = [key for option in OPTIONS for key in (option.key, *option.synonyms)]
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
        ("max-lost", "0", ("max_lost", 0)),
        ("max_lost", "5", ("max_lost", 5)),
        ("site", "a, b", ("sites", ("a", "b"))),
        ("sites", "a", ("sites", ("a",))),
        ("deadline", "1h", ("deadline", 4600.0)),
        ("budget", "2.5", ("budget", 2.5)),
        ("prefer", "cheap", ("prefer", "cheap")),
    ],
)
def test_a_value_by_its_key(key: str, text: str, value: tuple[str, object]) -> None:
    assert parse_option(key, text, now=1000.0) == value


@pytest.mark.parametrize("change", [{"cpus": 0}, {"retries": -1}, {"prefer": "dear"}, {"allocation": "x"}])
def test_the_daemon_refuses_what_the_declaration_excludes(change: dict[str, object]) -> None:
    spec = BagSpec(name="b", cwd="/", output="/o", environment={})
    bag = control.BagInput(spec=msgspec.structs.replace(spec, **change), tasks=[])
    with pytest.raises(msgspec.ValidationError, match="spec"):
        control.decode_question(control.encode(control.Submit(bag)))
