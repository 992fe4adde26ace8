"""Several partitions of one site: what their entries mean, and what is wrong with them."""

from __future__ import annotations

import pytest

from adaptor.config.loading import parse_config
from adaptor.config.schema import LimitsConfig, SiteConfig, sites_of
from adaptor.errors import ConfigError


def site(text: str) -> SiteConfig:
    indented = "".join(f"    {line}\n" for line in text.strip().splitlines())
    return parse_config(f"sites:\n  c:\n    backend: slurm\n{indented}", "f").sites["c"]


def test_what_an_entry_leaves_out_is_as_the_site_says() -> None:
    given = site("""
account: physics
limits: {max_proc: 64, max_tr: 1d}
partitions:
  short: {limits: {max_tr: 2h}}
  long-high: {partition: long, qos: high, account: chemistry}
""")
    each = sites_of(given)
    assert list(each) == ["short", "long-high"]
    short, long = each.values()
    assert (short.partition, short.account, short.qos) == ("short", "physics", None)
    assert short.limits == LimitsConfig(max_proc=64, max_tr=given.partitions["short"].limits.max_tr)
    assert (long.partition, long.account, long.qos) == ("long", "chemistry", "high")
    assert long.limits == given.limits
    assert not short.partitions


def test_a_site_without_partitions_is_itself() -> None:
    alone = site("partition: batch")
    assert sites_of(alone) == {"": alone}


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ("partitions: {a: {limits: {max_tr: 0}}}", "4: sites.c.partitions.a.limits.max_tr", "more than 0"),
        ("partitions:\n  a: {}\n  b: {limit: 3}", "6: sites.c.partitions.b.limit", "did you mean `limits`"),
        ("partitions:\n  a: {}\n  b: {partition: a}", "6: sites.c.partitions.b", "same partition, account"),
        ("partitions: {a: {}}\npartition: b", "5: sites.c.partition", "does not go with `partitions`"),
        ("partitions: {a: {limits: {max_tr: 30}}}", "4: sites.c.partitions.a.limits.max_tr", "the pad takes"),
        (
            "limits: {max_pending_requests: 2}\npartitions:\n  a: {limits: {max_pending_requests: 3}}",
            "6: sites.c.partitions.a.limits.max_pending_requests",
            "3 is more than all partitions of the site have together: 2",
        ),
        ("partitions: {a: {}, 'b c': {}}", "4: sites.c.partitions.b c", "the name consists of letters"),
        ("partitions: {a: {}, b: {qos: \"x\\ny\"}}", "4: sites.c.partitions.b.qos", "one line"),
        ("partitions: [a, b]", "4: sites.c.partitions", "needs a mapping"),
        ("partitions: {a: {}, a: {}}", "4: sites.c.partitions.a", "duplicate key"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(text: str, where: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        site(text)
    assert str(error.value).startswith(f"f:{where}: ")
    assert problem in str(error.value)


def test_a_local_site_has_no_partitions() -> None:
    with pytest.raises(ConfigError, match=r"f:1: sites.c.partitions: backend local has no partitions"):
        parse_config("sites: {c: {backend: local, partitions: {a: {}}}}", "f")


def test_several_names_in_partition_are_those_of_partitions() -> None:
    with pytest.raises(
        ConfigError, match=r"f:1: sites.c.partition: names several; write `partitions: \{a: \{\},"
    ):
        parse_config("sites: {c: {backend: slurm, partition: 'a,b'}}", "f")
