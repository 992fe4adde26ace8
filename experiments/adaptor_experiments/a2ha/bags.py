"""The bags of the evaluations: synthetic ones with the published statistics, and one that was measured."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec
import numpy as np

from adaptor.budget.provisioning.hosts import HostTerms
from adaptor_experiments.a2ha import published
from adaptor_experiments.a2ha.published import Seconds
from adaptor_simulation.files import ReplayError

HOURLY = HostTerms(unit=3600.0, startup=300.0)  # 2011, §4: 55 of 60 minutes are usable
WHOLE_HOUR = HostTerms(unit=3600.0)  # 2008, §4: no start-up
_Draw = np.random.Generator


class Kind(msgspec.Struct, frozen=True):
    """A bag of the evaluation. `page.yaml` says where it comes from."""

    key: str
    title: str
    optimal: int | None = None
    """Hosts, as the paper of 2011 says (§4.1); None where it has no such bag. Ours follow from the work."""
    terms: HostTerms = HOURLY


IMAGE = Kind("image", "image rendering", 18)
NORMAL = Kind("normal", "normal", 12)
TESTING = Kind("testing", "software testing", 29)
LONG = Kind("long", "long-running", terms=WHOLE_HOUR)
DEMO = Kind("demo", "demo picture", terms=HostTerms(unit=12.0, startup=1.0))
"""Of a unit of 12 s 11 s are usable, so that a unit holds about as many tasks as for the image."""
IMAGE_LISTS = (
    Kind("image-dark", "image rendering, a fifth of 25 s", 18),
    Kind("image-heavy", "image rendering, a twentieth of 565 s", 18),
)
TESTING_LISTS = (
    Kind("testing-power", "software testing, power law", 29),
    Kind("testing-dozen", "software testing, a dozen long ones", 29),
    Kind("testing-64", "software testing, mean 64.4 s", 29),
)
"""Lists that the published statistics allow as well: the results for them say what the choice decides."""


def _two_kinds(draw: _Draw, share: float, mean: float) -> Seconds:
    """Most of N(60 s, 10 s), and a share of another mean."""
    long = draw.random(300) < share
    return np.maximum(1.0, np.where(long, draw.normal(mean, 60, 300), draw.normal(60, 10, 300)))


def _many_kinds(draw: _Draw) -> Seconds:
    means = draw.choice([18.0, 60.0, 120.0, 300.0], size=600, p=[0.35, 0.35, 0.2, 0.1])
    return np.maximum(3.0, draw.normal(means, 0.1 * means))


def _levy(draw: _Draw) -> Seconds:
    found: Seconds = 36.0 / draw.normal(0.0, 1.0, 3000) ** 2
    return found[found <= 540.0][:600]


_DRAWN: dict[Kind, Callable[[_Draw], Seconds]] = {
    Kind("constant", "constant"): lambda _: np.full(256, 200.0),
    Kind("uniform", "uniform"): lambda draw: draw.uniform(10, 400, 400),
    Kind("exponential", "exponential"): lambda draw: draw.exponential(150, 500),
    Kind("log-normal", "log-normal"): lambda draw: draw.lognormal(np.log(60), 1.2, 600),
    Kind("two-kinds", "two kinds"): lambda draw: _two_kinds(draw, 0.2, 400),
    Kind("rare-long", "a tenth ten times as long"): lambda draw: _two_kinds(draw, 0.1, 600),
    Kind("many-kinds", "multi-modal"): _many_kinds,
    Kind("levy", "Lévy"): _levy,
}
"""Drawn again for each order; no parameter was chosen by these."""
OTHERS = tuple(_DRAWN)
KINDS = {
    kind.key: kind for kind in (IMAGE, *IMAGE_LISTS, NORMAL, TESTING, *TESTING_LISTS, LONG, DEMO, *OTHERS)
}
_FIXED: dict[str, Callable[[], Seconds]] = {
    "image": published.image_list,
    "image-dark": lambda: published.image_list(shortest=51),
    "image-heavy": lambda: published.image_list(longest=13),
    "testing": published.log_normal,
    "testing-power": published.power_law,
    "testing-dozen": published.dozen_long,
    "testing-64": lambda: published.log_normal(mean=64.4),
}
"""Lists of which only the order differs."""


def runtimes(kind: Kind, seed: int, order: int, demo: Path | None = None) -> Seconds:
    """Seconds of each task in the order in which they are taken.

    Args:
        demo: a list of measured runtimes; None: that of the package.

    Raises:
        ReplayError: the measured list cannot be read.
    """
    draw = np.random.default_rng([seed, order, len(kind.key)])
    if kind.key == "normal":
        return np.maximum(1.0, draw.normal(150, 30, 256))
    if kind.key == "long":
        return np.maximum(1.0, draw.normal(5400, 1200, 256))
    if kind in _DRAWN:
        return _DRAWN[kind](draw)
    return draw.permutation(fixed(kind.key) if kind.key in _FIXED else measured(demo))


@cache
def fixed(key: str) -> Seconds:
    """The list of a bag of which only the order differs."""
    return _FIXED[key]()


def measured(path: Path | None = None) -> Seconds:
    """The runtimes in the `seconds` column of a CSV file; None: of the list that comes with the package.

    Raises:
        ReplayError: it cannot be read.
    """
    source = files("adaptor_experiments.a2ha") / "demo.csv" if path is None else path
    try:
        rows = csv.DictReader(io.StringIO(source.read_text(encoding="ascii")))
        found = np.array([float(row["seconds"]) for row in rows])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReplayError(f"{source}: no list of runtimes (a column `seconds`): {error}") from error
    if not len(found) or not (found > 0).all() or not np.isfinite(found).all():
        raise ReplayError(f"{source}: no list of runtimes: each must be more than 0 s, and there must be one")
    return found


def optimal_hosts(work: float, terms: HostTerms) -> int:
    """The number with the least cost: work over usable time, rounded up (2011, §4.1, footnote 6)."""
    return math.ceil(work / terms.usable)
