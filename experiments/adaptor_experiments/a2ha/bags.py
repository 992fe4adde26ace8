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
from adaptor.simulation.errors import ReplayError
from adaptor_experiments.a2ha import published
from adaptor_experiments.a2ha.drawn import DRAWN, Seconds

HOURLY = HostTerms(unit=3600.0, startup=300.0)
"""2011, §4: 55 of 60 minutes are usable."""
WHOLE_HOUR = HostTerms(unit=3600.0)
"""2008, §4: no start-up."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A bag of the evaluation."""

    key: str
    title: str
    optimal: int | None
    """Hosts, as the paper of 2011 says (§4.1); None where it has no such bag. Ours follow from the work."""
    origin: str
    terms: HostTerms = HOURLY


IMAGE = Kind(
    key="image",
    title="image rendering",
    optimal=18,
    origin="synthetic: 256 tasks of 25 to 565 s, mean 220 s, deviation 125 s, as published; in one hump; the"
    " list is always the same",
)
NORMAL = Kind(
    key="normal",
    title="normal",
    optimal=12,
    origin="synthetic: 256 tasks of N(150 s, 30 s), drawn anew for each order",
)
TESTING = Kind(
    key="testing",
    title="software testing",
    optimal=29,
    origin="synthetic: 1,480 tasks, half of them below 30 s, mean 60 s, 3 above 15 minutes, as published;"
    " log-normal; the list is always the same",
)
LONG = Kind(
    key="long",
    title="long-running",
    optimal=None,
    origin="synthetic: 256 tasks of N(1.5 h, 20 min), drawn anew for each order; without a start-up",
    terms=WHOLE_HOUR,
)
DEMO = Kind(
    key="demo",
    title="demo picture",
    optimal=None,
    origin="measured: the 256 parts of `make demo` on two cores; mean 0.81 s, deviation 0.83 s. The unit is"
    " 12 s, of which 11 s are usable, so that a unit holds about as many tasks as for the image",
    terms=HostTerms(unit=12.0, startup=1.0),
)
IMAGE_LISTS = (
    Kind(
        key="image-dark",
        title="image rendering, a fifth of 25 s",
        optimal=18,
        origin="synthetic: the same statistics of 256 tasks; 51 take 25 s, as much of a picture is plain",
    ),
    Kind(
        key="image-heavy",
        title="image rendering, a twentieth of 565 s",
        optimal=18,
        origin="synthetic: the same statistics of 256 tasks; 13 take the longest time",
    ),
)
TESTING_LISTS = (
    Kind(
        key="testing-power",
        title="software testing, power law",
        optimal=29,
        origin="synthetic: the same statistics of 1,480 tasks, as a generalised Pareto distribution",
    ),
    Kind(
        key="testing-dozen",
        title="software testing, a dozen long ones",
        optimal=29,
        origin="synthetic: the same statistics of 1,480 tasks; 12 from 15 to 30 minutes, the others short",
    ),
    Kind(
        key="testing-64",
        title="software testing, mean 64.4 s",
        optimal=29,
        origin="synthetic: 1,480 tasks, half of them below 30 s; the mean, which is 1 minute as well in whole"
        " minutes, makes the paper's 29 hosts; log-normal",
    ),
)
"""Lists that the published statistics allow as well: the results for them say what the choice decides."""
OTHERS = tuple(
    Kind(key=key, title=title, optimal=None, origin=f"synthetic: {origin}, drawn anew for each order")
    for key, (title, origin, _) in DRAWN.items()
)
"""Nothing was set by these."""
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
    if kind.key in DRAWN:
        return DRAWN[kind.key][2](draw)
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
