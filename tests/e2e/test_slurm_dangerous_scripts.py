"""Scripts that could differ without a word: what their elements see, and what they leave, is as under sbatch.

The real Slurm beside is a site whose prolog gives each job a `$SLURM_TMPDIR`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.campaign.scripts.cases import DANGEROUS, Case
from lab.campaign.scripts.comparing import SITE, compare, slurm_with_tmpdir
from lab.campaign.scripts.public_cases import public_cases
from tests.clusters.slurm import ThrowawaySlurm, available
from tests.e2e.lab import Lab

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThrowawaySlurm]:
    if reason := available():
        pytest.skip(reason)
    with slurm_with_tmpdir(tmp_path_factory.mktemp("prolog")) as slurm:
        yield slurm


@pytest.fixture
def site(cluster: ThrowawaySlurm, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    for name, value in cluster.env.items():
        monkeypatch.setenv(name, value)
    lab.configure(SITE)
    return lab


@pytest.mark.nightly
def test_what_elements_see_and_leave(cluster: ThrowawaySlurm, site: Lab) -> None:
    different = {case.name: found for case in DANGEROUS if (found := compare(case, cluster, site)[0])}
    assert different == {}


@pytest.mark.nightly
@pytest.mark.parametrize("case", public_cases(), ids=lambda case: case.name)
def test_what_public_scripts_see_and_leave(case: Case, cluster: ThrowawaySlurm, site: Lab) -> None:
    different, variables = compare(case, cluster, site)
    assert different == []
    assert not {name for name in variables if name.startswith("SLURM_TMPDIR: None")}
