"""Keys of a site that say where its requests run."""

from __future__ import annotations

import pytest

from adaptor.config.loading import parse_config
from adaptor.errors import ConfigError


def broken(backend: str, line: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(f"sites:\n  hpc:\n    backend: {backend}\n    {line}\n", "c.yaml")
    return str(caught.value)


def test_slurm_knows_them() -> None:
    text = "{backend: slurm, constraint: a&b, exclude: 'n[1-3]', gres: 'gpu:1', licenses: 'matlab:2'}"
    site = parse_config(f"sites: {{hpc: {text}}}", "c.yaml").sites["hpc"]
    assert (site.constraint, site.exclude, site.gres, site.licenses) == ("a&b", "n[1-3]", "gpu:1", "matlab:2")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("constraint: a&&b", "4: sites.hpc.constraint: 'a&&b' is not an expression over features"),
        ("exclude: n[1-", "4: sites.hpc.exclude: 'n[1-' is not a list of hosts"),
        ("nodelist: ''", "4: sites.hpc.nodelist: '' names nothing"),
        ("gres: gpu:a:b:c", "4: sites.hpc.gres: 'gpu:a:b:c' is not a generic resource"),
        ("licenses: mat lab", "4: sites.hpc.licenses: 'mat lab' is not a licence such as"),
        ("exclude: [n1]", "4: sites.hpc.exclude: "),
        ('constraint: "a\\nb"', "4: sites.hpc.constraint: "),
    ],
)
def test_what_cannot_be_read_names_its_key(line: str, words: str) -> None:
    assert words in broken("slurm", line)


def test_who_does_not_know_them_says_so() -> None:
    assert "4: sites.hpc.constraint: is not known to" in broken("local", "constraint: fast")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "constraint: a|b",
            "sites.hpc.constraint: a|b: PBS can be asked for nodes that have all of several values",
        ),
        ("nodelist: n1,n2", "sites.hpc.nodelist: n1,n2: PBS can be asked for one node only, or for all"),
        ("exclude: n1", "sites.hpc.exclude: "),
        ("licenses: matlab", "sites.hpc.licenses: is not known to PBS"),
    ],
)
def test_pbs_says_what_it_cannot_be_asked_for(line: str, words: str) -> None:
    assert words in broken("pbs", line)
