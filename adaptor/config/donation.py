"""The part of a site's configuration about its donated nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Literal

import msgspec

from adaptor.config.ranges import MOST, AtLeastASecond, PositiveCount, PositiveFraction
from adaptor.config.yaml_lines import Fail
from adaptor.defaults import RUNTIME_DIRECTORY
from adaptor.donation.situation import Choice, DonationRules, Hours
from adaptor.plugins import AGENTS, DONATION, installed, needs
from adaptor.units import Duration

NODE = "{node}"  # stands for the node's name in the words of a launcher
_AGENTS_GRACE = 0.4
"""The part of the reclaim time that an agent's worker has for ending its tasks; then it is killed."""
_SHORT = 3.0  # seconds; less than what schedulers usually give a job that they preempt


class DonationConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Transparent allocation (De Rose §3) at one site; `docs/donation.md` explains both modes."""

    rare: ClassVar = frozenset({
        "account", "extra_args", "launcher", "runtime_directory", "reclaim_timeout", "choose",
        "reserve_nodes", "useful_time", "max_tr", "fit", "last_fit", "patience",
    })  # fmt: skip
    mode: Literal["preemptible", "agent"]
    """Kind of use: by jobs that the scheduler may preempt, or by workers that it does not know of."""
    partition: str | None = None
    """Preemptible: the partition (PBS: queue) whose jobs yield; None: the site's own."""
    account: str | None = None
    """Preemptible; None: the site's own."""
    qos: str | None = None
    """Preemptible; None: none, whatever the site's own is."""
    extra_args: tuple[str, ...] = ()
    """Preemptible: arguments for the submit command, verbatim; the site's own are not used."""
    launcher: tuple[str, ...] = ()
    """Agent: the words before a command that is to run on a node, for instance `[ssh, "{node}"]`."""
    runtime_directory: str = RUNTIME_DIRECTORY
    """Agent: where each node keeps what `adaptor reclaim` needs, on a disk of its own."""
    reclaim_timeout: AtLeastASecond = Duration(5)
    """Agent: the longest time that a local job waits until its node is free."""
    choose: Choice = "likely"
    """Idle nodes that are used: those on which a waiting task is likely to finish, or all (De Rose §3)."""
    max_nodes: PositiveCount | None = None
    """Nodes donated at any instant; None: no limit."""
    reserve_nodes: Annotated[int, msgspec.Meta(ge=0, le=MOST)] = 0
    """Idle nodes that are never donated."""
    useful_time: Duration = Duration(600)
    """A node on which a job is planned to start within this time is not donated."""
    max_tr: AtLeastASecond | None = None
    """The longest time of a donated node; None: the site's `limits.max_tr`."""
    hours: tuple[str, ...] = ()
    """Parts of the day in which nodes may be donated, by this machine's clock: `19:00-07:30`."""
    fit: PositiveFraction = 0.5
    """A task starts on a donated node if it finishes with this probability before the node is reclaimed."""
    last_fit: PositiveFraction = 0.1
    """Least probability for tasks that may only run on donated nodes."""
    patience: PositiveCount = 3
    """Number of preemptions after which a task waits for a pilot of a formal request."""

    @property
    def grace(self) -> float:
        """Seconds that the worker of a donated node has for ending its tasks: a local job waits for them."""
        return _AGENTS_GRACE * float(self.reclaim_timeout) if self.mode == "agent" else _SHORT

    def rules(self) -> DonationRules:
        """The rules in the form that the decision needs."""
        return DonationRules(
            choose=self.choose,
            max_nodes=self.max_nodes,
            reserve_nodes=self.reserve_nodes,
            useful_time=float(self.useful_time),
            hours=tuple(_hours(part) for part in self.hours),
            fit=self.fit,
            last_fit=self.last_fit,
            patience=self.patience,
        )


_PART = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)")


def _hours(part: str) -> Hours:
    """Read a part of a day. Raises ValueError: the text is none."""
    found = _PART.fullmatch(part)
    if found is None:
        raise ValueError(f"{part!r} is not a part of the day; write for instance '19:00-07:30'")
    begin, end = (60 * int(found[i]) + int(found[i + 1]) for i in (1, 3))
    if end > 24 * 60:
        raise ValueError(f"{part!r} ends after midnight; write for instance '19:00-07:30'")
    if begin == end:
        raise ValueError(f"{part!r} ends when it begins; for the whole day omit `hours`")
    return Hours(60.0 * begin, 60.0 * end)


def minutes_of(parts: Collection[str]) -> frozenset[int]:
    """The minutes of the day that lie in any of these parts; without parts, all of them.

    Raises:
        ValueError: one is not a part of a day.
    """
    day, found = 24 * 60, [_hours(part) for part in parts] or [Hours(0.0, 86_400.0)]
    return frozenset(
        minute % day
        for hours in found
        for minute in range(
            int(hours.begin) // 60, int(hours.end) // 60 + (day if hours.end <= hours.begin else 0)
        )
    )


def check_donation(
    donation: DonationConfig, backend: str, modes: Collection[str], pad: float, at: str, fail: Fail
) -> None:
    """Check that each mode has the keys that it needs, and none of the other mode.

    Args:
        backend: the site's type of batch scheduler.
        modes: the modes of donation that such sites may have.
        pad: seconds of each request in which no task runs.
    """
    if not modes:
        fail(at, f"backend {backend} has no donation: only nodes of a cluster are donated")
    if donation.mode not in modes:
        fail(f"{at}.mode", f"backend {backend} has only the donation mode {' or '.join(modes)}")
    if donation.mode == "agent" and "agent" not in installed(DONATION):
        fail(f"{at}.mode", needs("agent", AGENTS))
    _check_mode(donation, at, fail)
    if donation.max_tr is not None and donation.max_tr <= pad:
        fail(
            f"{at}.max_tr", f"{donation.max_tr:g} s leaves no time for a task: the site's pad takes {pad:g} s"
        )
    check_hours(donation.hours, f"{at}.hours", fail)


def check_hours(parts: Sequence[str], at: str, fail: Fail) -> None:
    """Check that these are parts of a day."""
    for index, part in enumerate(parts):
        try:
            _hours(part)
        except ValueError as error:
            fail(f"{at}[{index}]", str(error))


_OF_ONE_MODE = {
    "preemptible": ("partition", "account", "qos", "extra_args"),
    "agent": ("launcher", "runtime_directory", "reclaim_timeout"),
}
_DIRECTORY = re.compile(r"/[\w.@+-]+(/[\w.@+-]+)*", re.ASCII)


def _check_mode(donation: DonationConfig, at: str, fail: Fail) -> None:
    other = "agent" if donation.mode == "preemptible" else "preemptible"
    plain = DonationConfig(mode=donation.mode)
    for key in _OF_ONE_MODE[other]:
        if getattr(donation, key) != getattr(plain, key):
            fail(f"{at}.{key}", f"is not used with mode: {donation.mode}")
    if donation.mode == "preemptible":
        if not (donation.partition or donation.qos or donation.extra_args):
            fail(at, "give partition, qos or extra_args: they say which jobs the scheduler preempts")
        return
    if donation.launcher and not any(NODE in word for word in donation.launcher):
        fail(f"{at}.launcher", f"contains no {NODE}, which stands for the node's name")
    folder = donation.runtime_directory
    if not _DIRECTORY.fullmatch(folder) or ".." in PurePosixPath(folder).parts:
        # It is also written into the scripts that the scheduler runs as root.
        fail(
            f"{at}.runtime_directory",
            f"{folder!r} is not an absolute path of letters, digits and the characters . _ @ + -",
        )
