"""Channels and hooks of the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.config.loading import load_config, parse_config
from adaptor.config.schema import MAIL, ChannelConfig, NotifyConfig
from adaptor.errors import ConfigError

SITES = "sites: {here: {backend: local}}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("notify: {channels: {me: {}}}", "give either `url`, or `file`"),
        ("notify: {channels: {me: {url: 'json://x', file: f}}}", "give either `url`, or `file`"),
        ("notify: {channels: {me: {url: nobody}}}", "is no URL"),
        ("notify: {channels: {'m e': {file: f}}}", "letters, digits"),
        ("notify: {channels: {me: {file: f, events: [never]}}}", "never"),
        ("notify: {default: [you]}", "there is no channel 'you'"),
        ("hooks: {on_bag_end: [a], timeout: 0}", "more than 0"),
        ("hooks: {on_bag_end: a line}", "on_bag_end"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=r"site\.yaml:2") as told:
        parse_config(f"{SITES}{text}\n", "site.yaml")
    assert problem in str(told.value)


def test_a_configuration_with_a_url_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(f"{SITES}notify: {{channels: {{me: {{url: 'json://secret'}}}}}}\n")
    path.chmod(0o640)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}") as told:
        load_config(path)
    assert "secret" not in str(told.value)
    path.chmod(0o600)
    assert load_config(path).notify.channels["me"].url == "json://secret"


def test_a_name_leads_to_its_channel_a_file_or_the_mail_of_this_machine() -> None:
    own = ChannelConfig(url="json://x", events=("end",))
    notify = NotifyConfig(channels={"phone": own})
    assert notify.channel("phone") is own
    assert notify.channel("@/home/a/urls") == ChannelConfig(file="/home/a/urls")
    assert notify.channel("me") is MAIL
    assert notify.channel("you") is None
    assert NotifyConfig(channels={"me": own}).channel("me") is own
