"""Whether `adaptor site check` sees that pilots would not make room."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import SiteConfig
from backends.slurm import parse
from backends.slurm.donation import check_donation
from backends.slurm.rows import Partition

BY_PARTITION = {"PreemptType": "preempt/partition_prio", "PreemptMode": "CANCEL"}

Recorded = Callable[[str], str]


@pytest.fixture
def partitions(recorded: Recorded) -> dict[str, Partition]:
    """batch and short with tier 10, and scavenger with tier 1, whose jobs yield within 5 s."""
    return {each.name: each for each in parse.parse_partitions(recorded("plain/partitions.txt"))}


@pytest.fixture
def check(recorded: Recorded, partitions: dict[str, Partition]) -> Callable[..., list[tuple[str, str]]]:
    rows = parse.parse_nodes(recorded("plain/nodes.txt").encode())

    def levels(
        settings: dict[str, str] = BY_PARTITION, donated: dict[str, object] | None = None, **donation: object
    ) -> list[tuple[str, str]]:
        known = {
            **partitions,
            "scavenger": msgspec.structs.replace(partitions["scavenger"], **(donated or {})),
        }
        config = DonationConfig(**{"mode": "preemptible", "partition": "scavenger", **donation})  # type: ignore[arg-type]
        site = SiteConfig(backend="slurm", donation=config)
        return [(each.level, each.text) for each in check_donation(site, rows, known, settings)]

    return levels


def test_without_donation_nothing_is_said(recorded: Recorded, partitions: dict[str, Partition]) -> None:
    rows = parse.parse_nodes(recorded("plain/nodes.txt").encode())
    assert list(check_donation(SiteConfig(backend="slurm"), rows, partitions, BY_PARTITION)) == []


def test_donated_nodes_that_make_room(check: Callable[..., list[tuple[str, str]]]) -> None:
    assert check() == [
        ("ok", "donation: 6 nodes may be donated"),
        ("ok", "donation: jobs of partition scavenger make room for those of batch, with 5s to leave"),
    ]
    assert [level for level, _ in check(mode="agent", partition=None)] == ["ok"]


@pytest.mark.parametrize(
    ("given", "level", "problem"),
    [
        ({"partition": "night"}, "error", "Slurm has no partition night"),
        ({"settings": {"PreemptType": "preempt/none"}}, "error", "Slurm preempts no job here"),
        ({"settings": {}}, "error", "Slurm preempts no job here"),
        ({"donated": {"preempt_mode": "OFF"}}, "error", "are not preempted (PreemptMode=OFF)"),
        ({"donated": {"tier": 10}}, "error", "batch (PriorityTier=10) do not preempt those of scavenger"),
        ({"donated": {"preempt_mode": "SUSPEND,GANG"}}, "warning", "stopped, not ended"),
        ({"donated": {"grace": 0.0}}, "warning", "killed without notice (GraceTime=0)"),
        ({"settings": {"PreemptType": "preempt/qos"}, "qos": "low"}, "warning", "those of QOS low do, with"),
        (
            {"settings": {**BY_PARTITION, "PreemptExemptTime": "00:30:00"}},
            "error",
            "no job makes room in its first 30m (PreemptExemptTime)",
        ),
    ],
)
def test_donated_nodes_that_would_be_in_the_way(
    check: Callable[..., list[tuple[str, str]]], given: dict[str, object], level: str, problem: str
) -> None:
    *_, (found, text) = check(**given)
    assert found == level
    assert problem in text
    assert problem.startswith("Slurm has no") or text.startswith("donation: ")
