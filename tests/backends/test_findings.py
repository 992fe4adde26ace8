"""The checks of `adaptor site check` that are the same for every batch scheduler."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from adaptor.cli.operating.sites import findings
from adaptor.config.loading import parse_config
from adaptor.config.schema import SiteConfig
from backends.findings import Finding, check_prices, check_service

DONATES = "    donation: {mode: preemptible, partition: scavenger}\n"


def site(lines: str) -> SiteConfig:
    return parse_config(f"sites:\n  x:\n    backend: slurm\n    partition: batch\n{lines}", "f").sites["x"]


def found(lines: str) -> list[Finding]:
    return list(check_prices(site(lines)))


@pytest.mark.parametrize(
    "price",
    ["", "    price: {explicit: 2}\n", "    price: {explicit: 2, donated: 2.0}\n", "    price: {gpu: 5}\n"],
)
def test_equal_prices_switch_the_choice_by_cost_off(price: str) -> None:
    (told,) = found(DONATES + price)
    assert told.level == "warning"
    assert "cost never chooses between them" in told.text
    assert f"set `price.donated` below {2 if 'explicit' in price else 1} " in told.text


def test_cheaper_donated_nodes_are_as_they_should_be() -> None:
    (told,) = found(f"{DONATES}    price: {{explicit: 2, donated: 0.5}}\n")
    assert (told.level, told.text) == ("ok", "donation: donated nodes cost 0.5 an hour, requests 2")


def test_a_site_without_donated_nodes_has_nothing_to_choose() -> None:
    assert found("    price: {explicit: 2, donated: 2}\n") == []


def test_it_is_told_once_of_a_site_with_partitions() -> None:
    lines = f"{DONATES}    partitions: {{short: {{}}, long: {{}}}}\n".replace("    partition: batch\n", "")
    config = parse_config(f"sites:\n  x:\n    backend: slurm\n{lines}", "f").sites["x"]
    told = [each.text for each in findings(config)]
    assert sum("cost never chooses between them" in text for text in told) == 1


@pytest.mark.parametrize(("count", "words"), [(1, "1 node in service"), (2, "2 nodes in service")])
def test_nodes_are_counted(count: int, words: str) -> None:
    node = SimpleNamespace(has=SimpleNamespace(gpus=()))
    names = [f"n{number}" for number in range(count)]
    nodes: Any = SimpleNamespace(
        name="batch", nodes=dict.fromkeys(names, node), sizes=dict.fromkeys(names, 4), processors=4 * count
    )
    (told,) = check_service("partition", nodes)
    assert told.text == f"partition batch: {words}, {4 * count} processors"
