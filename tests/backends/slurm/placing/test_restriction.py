"""The keys of a site that say where its requests run, and the same among its extra arguments."""

from __future__ import annotations

import pytest

from adaptor.config.schema import SiteConfig
from backends.slurm.limits import SlurmTerms, ceilings
from backends.slurm.nodes import Look, PartitionNodes, find_site
from backends.slurm.parse import parse_partitions
from backends.slurm.placing.restriction import (
    key_problems,
    licenses_of,
    odd_arguments,
    options,
    parse_licenses,
    restriction_of,
)
from backends.slurm.submitting import where_options
from tests.backends.slurm.slurm_rows import node


def site(**keys: object) -> SiteConfig:
    return SiteConfig(backend="slurm", **keys)  # type: ignore[arg-type]


def allowed(config: SiteConfig, mixed: PartitionNodes) -> str:
    restriction = restriction_of(config)
    gres = {"n3": {("gpu", ""): 2}, "n4": {("gpu", "a100"): 2}}
    return " ".join(
        name
        for name in ("n1", "n2", "n3", "n4")
        if restriction.names(name) and restriction.like(mixed.features[name], gres.get(name, {}))
    )


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (site(), "n1 n2 n3 n4"),
        (site(constraint="new"), "n3 n4"),
        (site(exclude="n[1-2],x"), "n3 n4"),
        (site(nodelist="n[2-4]", constraint="old|fast"), "n2 n4"),
        (site(gres="gpu:a100:1"), "n4"),
        (site(extra_args=("-Cnew", "--nice")), "n3 n4"),
        (site(extra_args=("-C", "new")), "n3 n4"),
        (site(extra_args=("--constraint", "new", "--exclude=n4")), "n3"),
        (site(constraint="old", extra_args=("--constraint=new",)), "n3 n4"),  # sbatch takes the last one
        (site(extra_args=("--gres", "gpu:1", "-x", "n4")), "n3"),
        (site(extra_args=("--constraint=a||b",)), "n1 n2 n3 n4"),  # sbatch refuses it
    ],
)
def test_on_which_nodes_requests_may_run(config: SiteConfig, expected: str, mixed: PartitionNodes) -> None:
    assert allowed(config, mixed) == expected


def test_a_node_of_which_nothing_is_known_is_judged_by_its_name() -> None:
    look = Look(restriction=restriction_of(site(constraint="new", exclude="n2")))
    found = find_site([node("n1"), node("n2")], "batch", look)
    assert [each.ours for each in found.machines] == [True, False]
    assert found.processors == 4


def test_keys_go_into_the_request() -> None:
    config = site(constraint="a&b", exclude="n[1-2]", gres="nic:1", licenses="matlab:2")
    assert where_options(config, ["n1", "n2", "n3"]) == [
        "--constraint=a&b",
        "--exclude=n[1-2]",
        "--gres=nic:1",
        "--licenses=matlab:2",
    ]


def test_a_list_of_nodes_excludes_all_others() -> None:
    """With `--nodelist` Slurm would give each request parts of all of them, and of others beside them."""
    names = [f"n{number}" for number in range(1, 9)]
    assert where_options(site(nodelist="n[2-3],n7"), names) == ["--exclude=n[1,4-6,8]"]
    assert where_options(site(nodelist="n[1-9]"), names) == []


def test_options_are_read_as_sbatch_reads_them() -> None:
    words = (
        "-Ca",
        "-C",
        "b",
        "--constraint=c",
        "--constraint",
        "d",
        "--mem=4G",
        "-N2",
        "--exclusive",
        "file",
    )
    assert list(options(words)) == [
        *(("constraint", letter) for letter in "abcd"),
        ("--mem", "4G"),
        ("-N", "2"),
        ("--exclusive", ""),
    ]


def test_options_of_which_free_slots_know_nothing() -> None:
    found = dict(odd_arguments(("-w", "n1", "--exclusive", "-N2", "--mail-type=NONE", "-C", "x", "--nice")))
    assert set(found) == {"--nodelist", "--exclusive", "-N"}
    assert "write the key `nodelist`" in found["--nodelist"]
    assert "write the key `whole_nodes`" in found["--exclusive"]


def test_licenses() -> None:
    assert parse_licenses("matlab:2,fluent,fluent:3") == {"matlab": 2, "fluent": 4}
    assert parse_licenses("ansys@server:4") == {"ansys@server": 4}
    assert licenses_of(site(licenses="a", extra_args=("-L", "b:2"))) == {"b": 2}
    with pytest.raises(ValueError, match="is not a licence"):
        parse_licenses("mat lab")


@pytest.mark.parametrize(
    ("keys", "key", "words"),
    [
        ({"constraint": "a||b"}, "constraint", "not an expression over features"),
        ({"exclude": "n[1-"}, "exclude", "not a list of hosts"),
        ({"nodelist": ""}, "nodelist", "names nothing"),
        ({"gres": "gpu:a:b:c"}, "gres", "not a generic resource"),
        ({"licenses": "mat lab"}, "licenses", "not a licence"),
        ({"exclude": "n1", "nodelist": "n2"}, "exclude", "give either nodelist or exclude"),
    ],
)
def test_keys_that_cannot_be_read(keys: dict[str, str], key: str, words: str) -> None:
    ((named, problem),) = key_problems(site(**keys))
    assert named == key
    assert words in problem


def test_no_request_is_larger_than_the_nodes_that_are_left() -> None:
    look = Look(restriction=restriction_of(site(exclude="n2")))
    nodes = find_site([node("n1"), node("n2"), node("n3")], "batch", look)
    partition = parse_partitions(
        "PartitionName=batch Default=YES State=UP MaxTime=60 MaxNodes=UNLIMITED TotalCPUs=12 TotalNodes=3"
    )[0]
    known = ceilings(SlurmTerms(partitions={"batch": partition}), site(), nodes)
    assert known.processors.value == 8
    assert "on which this site's requests run" in known.processors.source
