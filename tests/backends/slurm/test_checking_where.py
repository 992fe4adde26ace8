"""What `adaptor site check` says of the nodes that a site's keys leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from adaptor.config.schema import SiteConfig
from backends.commands import Commands
from backends.findings import Finding
from backends.slurm.checking import check_licenses, check_partition, check_where
from backends.slurm.nodes import Look, find_site
from backends.slurm.placing.restriction import restriction_of
from backends.slurm.questions import Questions


def findings(asked: Questions, **keys: object) -> list[Finding]:
    site = SiteConfig(backend="slurm", **keys)  # type: ignore[arg-type]
    look = Look(details=asked.node_details(), restriction=restriction_of(site))
    nodes = find_site(asked.nodes(), None, look)
    return [*check_partition(nodes), *check_where(site, nodes)]


def test_gpus_are_told(asked: Questions) -> None:
    (told,) = findings(asked)
    assert told.text == "partition batch: 4 nodes in service, 22 processors, 2 GPUs, 2 a100 GPUs"


@pytest.mark.parametrize(
    ("keys", "level", "words"),
    [
        ({"constraint": "old"}, "ok", "requests run on 2 of the 4 nodes"),
        ({"constraint": "gold"}, "error", "they have features fast, new, old, slow; gres gpu:2, gpu:a100:2"),
        ({"constraint": "[old|new]"}, "warning", "a request may wait where a slot is shown"),
        ({"exclude": "n1,x[1-9]"}, "warning", "exclude: partition batch has no x1, x2, x3, x4, x5"),
        ({"nodelist": "n1,y"}, "warning", "nodelist: partition batch has no y"),
        ({"gres": "gpu:1"}, "warning", "submit bags with --gpus instead"),
        (
            {"extra_args": ("-w", "n1")},
            "warning",
            "extra_args: --nodelist: Slurm gives each request parts of all",
        ),
        ({"extra_args": ("--ntasks-per-node=2",)}, "warning", "extra_args: --ntasks-per-node: free slots"),
    ],
)
def test_what_the_keys_leave(asked: Questions, keys: dict[str, object], level: str, words: str) -> None:
    assert [each for each in findings(asked, **keys) if each.level == level and words in each.text]


@pytest.mark.parametrize(
    ("licenses", "level", "words"),
    [
        ("matlab:2", "ok", "licenses: at most 3 requests at a time, by matlab:2"),
        ("matlab:8", "error", "8 of matlab are asked for, and Slurm has 7 (it has matlab:7)"),
        ("gold", "error", "1 of gold are asked for, and Slurm has 0"),
    ],
)
def test_licenses(fake: Callable[[str, str], Path], licenses: str, level: str, words: str) -> None:
    fake("scontrol", "echo LicenseName=matlab Total=7 Used=0 Free=7 Reserved=0 Remote=no")
    (told,) = check_licenses(SiteConfig(backend="slurm", licenses=licenses), Questions(Commands(dict, 30.0)))
    assert told.level == level
    assert words in told.text
