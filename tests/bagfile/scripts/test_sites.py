"""Partitions and the like that a script names, against the sites of the configuration."""

from __future__ import annotations

import pytest

from adaptor.bagfile.scripts.asked import usual_dialect
from adaptor.config.schema import PartitionConfig, SiteConfig
from adaptor.errors import BagFileError
from tests.bagfile.scripts.submissions import bag_of

SITES = {
    "long": SiteConfig(backend="slurm", partition="batch", account="physics"),
    "fast": SiteConfig(backend="slurm", partition="short"),
}
PBS = SiteConfig(backend="pbs")


def test_scripts_without_directives_are_of_the_kind_of_the_sites() -> None:
    sites = {"a": PBS, "b": PBS, "here": SiteConfig(backend="local")}
    assert usual_dialect(SITES, ()) == "slurm"
    assert usual_dialect(sites, ()) == "slurm"
    assert usual_dialect(sites, ("a", "b")) == "pbs"


@pytest.mark.parametrize(
    ("line", "sites"),
    [
        ("", ()),
        ("#SBATCH -p batch", ("long",)),
        ("#SBATCH -p other,short", ("fast",)),
        ("#SBATCH -p batch,short", ()),
        ("#SBATCH -p batch,short -A physics", ("long",)),
        ("#SBATCH -p short -A physics", ("fast",)),
        ("#PBS -q short@server", ("fast",)),
    ],
)
def test_the_sites_that_have_what_is_wanted(line: str, sites: tuple[str, ...]) -> None:
    assert bag_of(line, sites=SITES).sites == sites


def test_a_partition_among_several_of_a_site_is_there() -> None:
    several = SiteConfig(
        backend="slurm", partitions={"day": PartitionConfig(), "night": PartitionConfig(partition="n")}
    )
    found = bag_of("#SBATCH -p n", sites={"one": several, **SITES})
    assert found.sites == ("one",)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("#SBATCH -p gpu", "job.sh:2: -p gpu: no site of the configuration has this `partition`"),
        ("#SBATCH -p gpu", "(long has batch, fast has short); name a site by --site"),
        ("#SBATCH --reservation=r", "name a site by --site"),
        ("#PBS -l nodes=1:ppn=2:avx", "-l avx: a matter of a site's configuration; name a site by --site"),
        ("#PBS -l select=1:cpu_type=icelake", "-l cpu_type=icelake: a matter of a site's"),
    ],
)
def test_where_none_of_several_sites_has_it_the_user_chooses(line: str, problem: str) -> None:
    with pytest.raises(BagFileError) as caught:
        bag_of(line, sites=SITES)
    assert problem in str(caught.value)
    chosen = bag_of(line, sites=SITES, options={"sites": ("fast",)})
    assert (chosen.sites, chosen.remarks) == (("fast",), [])


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        ("#SBATCH -p gpu", "-p gpu: the configuration of long counts, which has batch"),
        ("#SBATCH -q high", "-q high: the configuration of long counts, which has none"),
        ("#SBATCH --reservation=r", "--reservation=r: not asked for; the configuration of long says what"),
        ("#PBS -l nodes=1:ppn=2:avx", "-l avx: not asked for; the configuration of long says what"),
    ],
)
def test_where_there_is_one_site_its_configuration_counts(line: str, remark: str) -> None:
    bag = bag_of(line, sites={"long": SITES["long"]})
    assert bag.sites == ()
    (found,) = bag.remarks
    assert found.line == 2
    assert remark in found.text


def test_who_would_get_mail_is_notified_or_a_remark_says_so() -> None:
    (remark,) = bag_of("#SBATCH --mail-type=END --mail-user=ada@x").remarks
    assert remark.text == "--mail-type=END: no message is sent; --notify sends one"
    assert bag_of("#SBATCH --mail-type=END", notified=True).remarks == []
    assert bag_of("#SBATCH --mail-type=END", options={"notify": ("me",)}).remarks == []
    assert bag_of("#SBATCH --mail-type=NONE").remarks == bag_of("#PBS -m n").remarks == []
    assert len(bag_of("#PBS -m abe").remarks) == 1
    assert bag_of("#PBS -m abe", ignore=["mail"]).remarks == []
