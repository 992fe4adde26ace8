"""The bags of the evaluations: synthetic ones with the published statistics, and one that was measured.

The papers publish no list. What they say of one leaves most of it open: the image rendering has 256 runtimes,
and four numbers are known of them; the software testing has 1,480, and three. So one plain shape is chosen
for each, by a rule that no result had a part in, and others with the same statistics are shown next to it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from statistics import NormalDist

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor.budget.provisioning.hosts import HostTerms

Seconds = npt.NDArray[np.float64]
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
"""Demo bag with a unit of 12 s, of which 11 s are usable: a unit holds about as many tasks as for the
image."""
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
IMAGE_TASKS, IMAGE_MEAN, IMAGE_DEVIATION = 256, 220.0, 125.0  # 2011, §4: seconds
IMAGE_SHORTEST, IMAGE_LONGEST = 25.0, 565.0
"""2008, §3: some tasks take about 25 s, and the amplitude is about 9 minutes."""
TESTING_TASKS, TESTING_MEDIAN, TESTING_MEAN = 1480, 30.0, 60.0
"""2011, §4: half of the tasks are below 30 s, and the average is 1 minute."""
TESTING_LONG = 900.0  # 2011, §4: few tasks are longer

_HALVINGS = 50


def image_list(shortest: int = 1, longest: int = 1) -> Seconds:
    """The image rendering: the shortest and the longest runtime, each several times, and between them one
    smooth hump.

    The hump is a Kumaraswamy distribution (1980), on the range as the beta distribution, whose quantiles are
    a plain formula. Its two shapes are what the mean and the deviation leave.
    """
    between = IMAGE_TASKS - shortest - longest
    ends = np.array([IMAGE_SHORTEST] * shortest + [IMAGE_LONGEST] * longest)
    mean = (IMAGE_TASKS * IMAGE_MEAN - ends.sum()) / between
    squares = IMAGE_TASKS * (IMAGE_DEVIATION**2 + IMAGE_MEAN**2) - (ends**2).sum()
    width = IMAGE_LONGEST - IMAGE_SHORTEST
    hump = _hump(between, (mean - IMAGE_SHORTEST) / width, math.sqrt(squares / between - mean**2) / width)
    return np.sort(np.concatenate([ends, IMAGE_SHORTEST + width * hump]))


def _hump(count: int, mean: float, deviation: float) -> Seconds:
    """Quantiles of a Kumaraswamy distribution on [0, 1], which have this mean and deviation."""

    def with_first(first: float) -> Seconds:
        second = _where(lambda tried: mean - float(_quantiles(count, first, tried).mean()), 0.05, 50.0)
        return _quantiles(count, first, second)

    return with_first(_where(lambda tried: deviation - float(with_first(tried).std()), 0.2, 20.0))


def _quantiles(count: int, first: float, second: float) -> Seconds:
    found: Seconds = (1 - (1 - _places(count)) ** (1 / second)) ** (1 / first)
    return found


def _places(count: int) -> Seconds:
    """The shares of a distribution at which its quantiles stand for it."""
    return (np.arange(count) + 0.5) / count


def log_normal(mean: float = TESTING_MEAN) -> Seconds:
    """The software testing as log-normal quantiles, half of them below 30 s.

    The deviation of the logarithms makes the mean.
    """
    normal = np.array([NormalDist().inv_cdf(place) for place in _places(TESTING_TASKS)])

    def with_sigma(sigma: float) -> Seconds:
        found: Seconds = TESTING_MEDIAN * np.exp(sigma * normal)
        return found

    return with_sigma(_where(lambda sigma: float(with_sigma(sigma).mean()) - mean, 0.1, 3.0))


def power_law() -> Seconds:
    """The software testing as generalised Pareto quantiles with that median; the shape makes the mean."""
    left = 1 - _places(TESTING_TASKS)

    def with_shape(shape: float) -> Seconds:
        found: Seconds = TESTING_MEDIAN * (left**-shape - 1) / (2.0**shape - 1)
        return found

    return with_shape(_where(lambda shape: float(with_shape(shape).mean()) - TESTING_MEAN, 0.05, 0.95))


def dozen_long() -> Seconds:
    """The software testing in three parts, of which the middle makes the mean.

    Half of the tasks lie evenly from 2 to 30 s, a dozen from 15 to 30 minutes, the others exponentially.
    """
    half, dozen = TESTING_TASKS // 2, 12
    below = np.linspace(2.0, TESTING_MEDIAN, half, endpoint=False)
    longest = np.linspace(TESTING_LONG, 2 * TESTING_LONG, dozen + 1)[1:]
    above = -np.log(1 - _places(half - dozen))
    total = TESTING_TASKS * TESTING_MEAN - below.sum() - longest.sum() - len(above) * TESTING_MEDIAN
    return np.concatenate([below, TESTING_MEDIAN + above * total / above.sum(), longest])


def _where(of: Callable[[float], float], low: float, high: float) -> float:
    """Argument at which a function that grows from below 0 to above it is 0."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if of(middle) < 0 else (low, middle)
    return (low + high) / 2


def measured() -> Seconds:
    """The parts of the picture of `make demo`."""
    content = (files("adaptor_experiments.a2ha") / "demo.csv").read_text(encoding="ascii")
    return np.array([float(row["seconds"]) for row in csv.DictReader(content.splitlines())])


_FIXED: dict[str, Callable[[], Seconds]] = {
    "demo": measured,
    "image": image_list,
    "image-dark": lambda: image_list(shortest=51),
    "image-heavy": lambda: image_list(longest=13),
    "testing": log_normal,
    "testing-power": power_law,
    "testing-dozen": dozen_long,
    "testing-64": lambda: log_normal(mean=64.4),
}
"""Lists of which only the order differs."""


def runtimes(kind: Kind, seed: int, order: int) -> Seconds:
    """Seconds of each task in the order in which they are taken."""
    draw = np.random.default_rng([seed, order, len(kind.key)])
    if kind.key == "normal":
        return np.maximum(1.0, draw.normal(150, 30, 256))
    if kind.key == "long":
        return np.maximum(1.0, draw.normal(5400, 1200, 256))
    return _DRAWN[kind](draw) if kind in _DRAWN else draw.permutation(fixed(kind.key))


@cache
def fixed(key: str) -> Seconds:
    """The list of a bag of which only the order differs."""
    return _FIXED[key]()


def optimal_hosts(work: float, terms: HostTerms) -> int:
    """The number with the least cost: work over usable time, rounded up (2011, §4.1, footnote 6)."""
    return math.ceil(work / terms.usable)
