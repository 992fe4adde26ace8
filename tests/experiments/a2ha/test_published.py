"""The lists have all the statistics that are published."""

from __future__ import annotations

import numpy as np
import pytest

from adaptor_experiments.a2ha.bags import IMAGE, IMAGE_LISTS, TESTING, TESTING_LISTS, fixed


@pytest.mark.parametrize("kind", [IMAGE, *IMAGE_LISTS], ids=lambda kind: kind.key)
def test_the_image_rendering(kind):
    """2011, §4; 2008, §3."""
    tasks = fixed(kind.key)
    assert len(tasks) == 256
    assert (tasks.mean(), tasks.std()) == (pytest.approx(220), pytest.approx(125))
    assert (tasks.min(), tasks.max()) == (25, 25 + 9 * 60)


@pytest.mark.parametrize("kind", [TESTING, *TESTING_LISTS[:2]], ids=lambda kind: kind.key)
def test_the_software_testing(kind):
    """2011, §4."""
    tasks = fixed(kind.key)
    assert len(tasks) == 1480
    assert tasks.mean() == pytest.approx(60)
    assert (tasks < 30).mean() == 0.5
    assert 1 <= (tasks > 900).sum() <= 20


def test_the_list_that_makes_29_hosts_differs_in_its_mean_only():
    tasks = fixed("testing-64")
    assert tasks.mean() == pytest.approx(64.4)
    assert (len(tasks), (tasks < 30).mean()) == (1480, 0.5)


def test_the_lists_differ():
    for kinds in ((IMAGE, *IMAGE_LISTS), (TESTING, *TESTING_LISTS)):
        quartiles = {tuple(np.quantile(fixed(kind.key), [0.25, 0.75]).round()) for kind in kinds}
        assert len(quartiles) == len(kinds)
