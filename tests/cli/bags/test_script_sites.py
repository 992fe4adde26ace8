"""Partitions and the like that a script names, against the sites of the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.bagfile.scripts.asked import NOTIFY, SiteWish
from adaptor.bagfile.scripts.getopt import GivenOption
from adaptor.cli.bags.script_sites import check_wishes, usual_dialect
from adaptor.errors import BagFileError

CONFIG = """
sites:
  long: {backend: slurm, partition: batch, account: physics}
  fast: {backend: slurm, partition: short}
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    return str(file)


def test_scripts_without_directives_are_of_the_kind_of_the_sites(path: str, tmp_path: Path) -> None:
    pbs = tmp_path / "pbs.yaml"
    pbs.write_text("sites:\n  a: {backend: pbs}\n  b: {backend: pbs}\n  here: {backend: local}\n")
    assert usual_dialect(path, ()) == "slurm"
    assert usual_dialect(str(pbs), ()) == "slurm"
    assert usual_dialect(str(pbs), ("a", "b")) == "pbs"


def wish(key: str, value: str) -> SiteWish:
    return SiteWish(key, GivenOption(key or "reservation", value, 3, f"--{key}={value}"))


def test_the_sites_that_have_what_is_wanted(path: str) -> None:
    def found(*wishes: SiteWish) -> tuple[str, ...]:
        return check_wishes(wishes, "job.sh", path, chosen=(), told=False)

    assert found() == ()
    assert found(wish("partition", "batch")) == ("long",)
    assert found(wish("partition", "other,short")) == ("fast",)
    assert found(wish("partition", "batch,short")) == ()
    assert found(wish("partition", "batch,short"), wish("account", "physics")) == ("long",)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            wish("partition", "gpu"),
            "job.sh:3: --partition=gpu: no site of the configuration has this `partition`",
        ),
        (wish("partition", "gpu"), "(long has batch, fast has short)"),
        (wish("", "maintenance"), "name a site by --site"),
        (wish(NOTIFY, "ALL"), "name who is told by --notify"),
    ],
)
def test_what_no_site_has(path: str, given: SiteWish, problem: str) -> None:
    with pytest.raises(BagFileError) as caught:
        check_wishes([given], "job.sh", path, chosen=(), told=False)
    assert problem in str(caught.value)


def test_a_choice_of_the_user_is_enough(path: str) -> None:
    assert check_wishes([wish("partition", "gpu")], "job.sh", path, chosen=("fast",), told=False) == ("fast",)
    assert check_wishes([wish(NOTIFY, "END")], "job.sh", path, chosen=(), told=True) == ()


def test_a_channel_of_the_configuration_stands_for_mail(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"{CONFIG}notify: {{default: [me], channels: {{me: {{file: /x}}}}}}\n")
    assert check_wishes([wish(NOTIFY, "END")], "job.sh", str(file), chosen=(), told=False) == ()
