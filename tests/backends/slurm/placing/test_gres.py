"""Generic resources and licences in all the forms in which Slurm prints them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.resources import Gpus
from backends.base import SchedulerError
from backends.observed.rows import named_as, total, without
from backends.slurm.placing.gres import (
    License,
    covers,
    free_from,
    gres_counts,
    parse_gpus,
    parse_license_rows,
    sharded_gpus,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(null)", ()),
        ("N/A", ()),
        ("gpu:2", (("", 2),)),
        ("gpu", (("", 1),)),
        ("gpu:a100", (("a100", 1),)),
        ("gpu:0", ()),
        ("gpu:a100:4(S:0-1)", (("a100", 4),)),
        ("gpu:a100:2(IDX:0,2-3)", (("a100", 2),)),
        ("gpu:a100:0(IDX:N/A)", ()),
        ("gpu:a100:2(S:0),gpu:t4:1(S:1),mps:400", (("a100", 2), ("t4", 1))),
        ("gpu:a100:2(IDX:0,2),shard:a100:3(1/4,2/4)", (("a100", 2),)),
        ("gpu:1g.5gb:7", (("1g.5gb", 7),)),
        ("bandwidth:lustre:no_consume:4G,gpu:kepler:1", (("kepler", 1),)),
        ("gres:gpu:a100:1", (("a100", 1),)),
        ("gres/gpu:a100=2", (("a100", 2),)),
    ],
)
def test_formats(text: str, expected: Gpus) -> None:
    assert parse_gpus(text) == expected


@pytest.mark.parametrize("text", ["gpu:a100:b:c", ":2", "gpu:a:b", "gpu:2(IDX:0", "gpu:2,,gpu:1", ","])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"generic resource|has no number"):
        gres_counts(text)


TYPES = st.sampled_from(["", "a100", "t4", "1g.5gb"])
GPUS = st.dictionaries(TYPES, st.integers(1, 8)).map(lambda counts: tuple(sorted(counts.items())))
BRACKETS = st.sampled_from(["", "(S:0-1)", "(IDX:0,2-3)", "(IDX:N/A)", "(S:0,2)"])


@given(GPUS, st.data())
def test_all_that_is_printed_is_read(gpus: Gpus, data: st.DataObject) -> None:
    items = [
        f"gpu:{type}:{count}{data.draw(BRACKETS)}" if type else f"gpu:{count}{data.draw(BRACKETS)}"
        for type, count in gpus
    ]
    others = data.draw(
        st.lists(st.sampled_from(["mps:100", "shard:8", "nic:eth:2"]), unique=True, max_size=2)
    )
    assert parse_gpus(",".join(data.draw(st.permutations([*items, *others]))) or "(null)") == gpus


@given(GPUS, GPUS)
def test_what_is_taken_and_what_is_left_make_the_whole(one: Gpus, other: Gpus) -> None:
    both = total([one, other])
    assert sum(count for _, count in without(both, one)) == sum(count for _, count in other)
    if not any(type == "" for type, _ in one):
        assert without(both, one) == other
    assert without(one, both) == ()


def test_a_number_alone_is_of_the_only_type_of_the_node() -> None:
    assert named_as((("", 2),), (("a100", 4),)) == (("a100", 2),)
    assert named_as((("", 2),), (("a100", 4), ("t4", 1))) == (("", 2),)
    assert named_as((("", 2),), ()) == (("", 2),)


def test_a_node_covers_what_is_asked_for_by_name_and_type() -> None:
    node = gres_counts("gpu:a100:2,gpu:t4:1,nic:eth:1")
    assert covers(node, gres_counts("gpu:3"))
    assert covers(node, gres_counts("gpu:a100:2,nic"))
    assert not covers(node, gres_counts("gpu:a100:3"))
    assert not covers(node, gres_counts("scratch:1G"))


@pytest.mark.parametrize(
    ("used", "whole", "sharded"),
    [
        ("gpu:0(IDX:N/A),shard:3(3/4,0/4)", (), (("", 1),)),
        ("gpu:a100:1(IDX:0),shard:a100:2(-/4,2/4)", (("a100", 1),), (("a100", 1),)),
        ("gpu:a100:1(IDX:0),shard:a100:0(-/4,0/4)", (("a100", 1),), ()),
        ("gpu:2,shard:(null):1(IDX:0)", (("", 2),), ()),
        ("gpu:1g.5gb:2(IDX:0-1)", (("1g.5gb", 2),), ()),
        ("", (), ()),
    ],
)
def test_a_gpu_of_which_shards_are_in_use_is_in_use(used: str, whole: Gpus, sharded: Gpus) -> None:
    """As 26.05.5 and 22.05.8 (the fourth) print it."""
    assert parse_gpus(used) == whole
    assert sharded_gpus(used) == sharded


TEXT = "LicenseName=matlab Total=4 Used=3 Free=1 Reserved=0 Remote=no\n"


def test_rows_of_licences() -> None:
    assert parse_license_rows(TEXT) == {"matlab": License(total=4, free=1)}
    assert parse_license_rows("No licenses configured in Slurm.\n") == {}
    with pytest.raises(SchedulerError, match="scontrol show license printed a line"):
        parse_license_rows("Segmentation fault")


def test_a_licence_is_free_when_enough_jobs_have_ended() -> None:
    there = parse_license_rows(TEXT)
    held = [(300.0, {"matlab": 2}), (200.0, {"fluent": 9}), (100.0, {"matlab": 1})]
    assert free_from(10.0, {"matlab": 1}, there, held) == {}
    assert free_from(10.0, {"matlab": 2}, there, held) == {"matlab": 100.0}
    assert free_from(10.0, {"matlab": 3}, there, held) == {"matlab": 300.0}
    assert free_from(10.0, {"matlab": 5}, there, held) == {"matlab": math.inf}
    assert free_from(10.0, {"gold": 1}, there, held) == {"gold": math.inf}
