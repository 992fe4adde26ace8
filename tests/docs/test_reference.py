"""The reference has every key, option and command of the code, each with its sentence."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec
import pytest
from code_reference import Group, bag_rows, config_groups
from command_reference import commands_text, description
from reference_pages import FOLDER, PAGES, current

from adaptor.bagfile.options import OPTIONS
from adaptor.cli.main import program
from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig


def groups() -> dict[str, Group]:
    return {group.path: group for group in config_groups()}


def commands(group: click.Group = program, path: str = "adaptor") -> Iterator[tuple[str, click.Command]]:
    """All commands, those of groups included, by what a user types."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def test_every_key_of_the_configuration_is_there_with_its_sentence() -> None:
    found = groups()
    assert {"", "sites.NAME", "sites.NAME.limits", "sites.NAME.ssh", "sites.NAME.donation", "daemon"} <= set(
        found
    )
    for path, struct in (("sites.NAME", SiteConfig), ("sites.NAME.donation", DonationConfig)):
        assert [key.name for key in found[path].keys] == list(struct.__struct_fields__)
    mute = [
        f"{group.path}.{key.name}"
        for group in found.values()
        for key in group.keys
        if not key.meaning.endswith(".") or not key.values
    ]
    assert mute == [], "write a string below the field"


def test_at_most_fifty_values_come_first_and_the_rare_keys_exist() -> None:
    keys = [key for group in groups().values() for key in group.keys]
    usual = [key for key in keys if not key.rare and "](#" not in key.values]
    assert len(usual) <= 50
    for struct in (SiteConfig, DonationConfig):
        assert struct.rare < set(struct.__struct_fields__)


def test_a_key_says_its_values_and_its_default_as_the_yaml_has_them() -> None:
    site = {key.name: key for key in groups()["sites.NAME"].keys}
    assert site["growth_factor"][1:3] == ("an integer, from 2 to 1000", "`2`")
    assert site["pad"][1:3] == ("a duration", "`30s`")
    assert site["charging_unit"][1:3] == ("a duration, whole seconds from 1s to 1h", "`1s`")
    assert site["whole_nodes"][1:3] == ("`true` or `false`", "`false`")
    assert site["heuristic"][1:3] == ("`adaptive`, `completion`, `elastic`, `static`", "`elastic`")
    assert site["limits"].values == "[keys of its own](#sitesnamelimits)"
    assert site["python"].meaning.startswith("The interpreter for the workers; left out: ")
    assert site["backend"].default == "required"
    daemon = {key.name: key for key in groups()["daemon"].keys}
    assert daemon["port"].values == "an integer, from 0 to 65535"


def test_every_option_of_a_bag_is_there_with_its_meaning() -> None:
    assert [row.name for row in bag_rows()] == [option.key for option in OPTIONS]
    assert not [row.name for row in bag_rows() if not row.meaning or not row.values]


def test_every_command_is_there_with_its_help_and_that_of_its_options() -> None:
    page = commands_text()
    assert not [path for path, _ in commands() if f"\n### {path}\n" not in page]
    mute = [path for path, command in commands() if not command.help]
    mute += [
        f"{path} {option.opts[0]}"
        for path, command in commands()
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden and not option.help
    ]
    assert mute == []


def test_the_help_of_a_command_keeps_its_examples_as_they_are() -> None:
    text = "Do *all*.\n\nWith `last` too.\n\n\b\nExample:\n  printf 'a\\n' | adaptor x --set 1\n  adaptor y\n"
    assert list(description(text)) == [
        r"Do \*all\*.",
        "",
        "With `last` too.",
        "",
        "Example:",
        "",
        "```text",
        r"printf 'a\n' | adaptor x --set 1",
        "adaptor y",
        "```",
        "",
    ]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_what_the_code_says(name: str) -> None:
    pytest.importorskip("adaptor_experiments", reason="its commands are on the page too")
    assert (FOLDER / name).read_text(encoding="utf-8") == current(name), "run: make reference"


def test_a_type_without_words_is_an_error_and_no_empty_cell() -> None:
    from code_reference import _values

    with pytest.raises(TypeError, match="no words for"):
        _values(msgspec.inspect.type_info(bytes))
