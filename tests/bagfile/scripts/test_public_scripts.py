"""Array scripts of public repositories: which run as they are, and which are refused for a right reason."""

from __future__ import annotations

import pytest

from tests.bagfile.scripts.public import ONE, TWO, PublicScript, kind_of, public_scripts

SCRIPTS = public_scripts()
DRAWN = [each for each in SCRIPTS if each.found == "drawn"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.repository)
def test_what_becomes_of_it(script: PublicScript) -> None:
    assert kind_of(script.text, ONE) == script.kind


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.repository)
def test_where_there_are_several_sites_no_more_than_a_site_is_asked_for(script: PublicScript) -> None:
    same = {"unchanged": ("unchanged", "remark", "site"), "remark": ("unchanged", "remark", "site")}
    assert kind_of(script.text, TWO) in same.get(script.kind, (script.kind,))


def test_three_of_four_run_as_they_are() -> None:
    runs = [each for each in DRAWN if each.kind in ("unchanged", "remark")]
    assert len(DRAWN) == 60
    assert len(runs) >= 0.75 * len(DRAWN)
    assert len({each.repository for each in SCRIPTS}) == len(SCRIPTS)
