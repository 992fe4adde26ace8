"""The bags of the evaluations: synthetic ones with the published statistics, and one that was measured."""

from __future__ import annotations

import csv
import io
import math
from importlib.resources import files
from pathlib import Path
from statistics import NormalDist

import msgspec
import numpy as np

from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.experiments.a2ha.drawn import DRAWN, Seconds
from adaptor.simulation.errors import ReplayError

HOURLY = HostTerms(unit=3600.0, startup=300.0)
"""2011, §4: 55 of 60 minutes are usable."""
WHOLE_HOUR = HostTerms(unit=3600.0)
"""2008, §4: no start-up."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A bag of the evaluation."""

    key: str
    title: str
    optimal: int | None
    """Hosts, as the paper of 2011 says (§4.1); None where it has no such bag."""
    origin: str
    terms: HostTerms = HOURLY


IMAGE = Kind(
    key="image",
    title="image rendering",
    optimal=18,
    origin="synthetic: 256 tasks of 20 to 560 s, mean 220 s, deviation 125 s; the list is always the same",
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
    origin="synthetic: 1,480 tasks, half of them below 22 s, mean 64.5 s (which makes 29 hosts), log-normal "
    "up to 30 minutes; the list is always the same",
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
OTHERS = tuple(
    Kind(key=key, title=title, optimal=None, origin=f"synthetic: {origin}, drawn anew for each order")
    for key, (title, origin, _) in DRAWN.items()
)
"""Nothing was set by these."""
KINDS = {kind.key: kind for kind in (IMAGE, NORMAL, TESTING, LONG, DEMO, *OTHERS)}


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
    fixed = {"image": image, "testing": testing}.get(kind.key)
    return draw.permutation(fixed() if fixed else measured(demo))


def image() -> Seconds:
    """Spread over 20 to 560 s as a beta distribution with the published mean and deviation."""
    low, high, mean, deviation = 20.0, 560.0, 220.0, 125.0
    share = (mean - low) / (high - low)
    total = share * (1 - share) / (deviation / (high - low)) ** 2 - 1
    drawn = low + (high - low) * np.random.default_rng(2567).beta(share * total, (1 - share) * total, 256)
    exact = mean + (drawn - drawn.mean()) * deviation / drawn.std()
    clipped: Seconds = np.clip(exact, 15.0, high)
    return clipped


def testing() -> Seconds:
    """Log-normal quantiles with half of the tasks below 22 s and a mean of 64.5 s; the longest is cut."""
    median, mean, longest, tasks = 22.0, 64.5, 1800.0, 1480
    sigma = math.sqrt(2 * math.log(mean / median))
    normal = NormalDist()
    drawn = np.array([median * math.exp(sigma * normal.inv_cdf((i + 0.5) / tasks)) for i in range(tasks)])
    cut: Seconds = np.minimum(drawn, longest)
    # What the cut takes away is given to the longer half, so that the median stays.
    upper = cut > median
    cut[upper] *= 1 + (mean * tasks - cut.sum()) / cut[upper].sum()
    return cut


def measured(path: Path | None = None) -> Seconds:
    """The runtimes in the `seconds` column of a CSV file; None: of the list that comes with the package.

    Raises:
        ReplayError: it cannot be read.
    """
    source = files("adaptor.experiments.a2ha") / "demo.csv" if path is None else path
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
