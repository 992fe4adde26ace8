"""Limits that the operator of a login node sets for its users' configurations: `/etc/adaptor/policy.yaml`.

It binds sites whose batch scheduler answers on this machine. A value beyond it is refused; what a site leaves
out stays within it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from adaptor.config.donation import DonationConfig, minutes_of
from adaptor.config.ranges import MOST, AtLeastASecond, PositiveCount, PositiveDuration
from adaptor.config.registered import load_backend
from adaptor.config.schema import LimitsConfig, SiteConfig
from adaptor.config.yaml_lines import Fail, KeyLines
from adaptor.model import Limits
from adaptor.units import Duration, HourlyRate, format_duration, format_hourly


class DonationTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    max_nodes: PositiveCount | None = None
    """The most that a site may say."""
    reserve_nodes: Annotated[int, msgspec.Meta(ge=0, le=MOST)] | None = None
    """The least that a site may say."""
    useful_time: Duration | None = None
    """The least that a site may say."""
    reclaim_timeout: AtLeastASecond | None = None
    """The most that a site may say."""
    hours: tuple[str, ...] | None = None
    """Parts of the day outside of which no node is donated."""


class PolicyKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keys and ranges are those of a site."""

    poll_interval: PositiveDuration | None = None
    """The least that a site may say; the queue is never read more often."""
    limits: LimitsConfig = LimitsConfig()
    """The most that a site and each of its partitions may say."""
    max_submissions: HourlyRate | None = None
    """The most that a site may say."""
    max_withdrawals: HourlyRate | None = None
    """The most that a site may say."""
    donation: DonationTerms = DonationTerms()
    """Conditions of the donation of idle nodes."""


class Policy(msgspec.Struct, frozen=True):
    keys: PolicyKeys = PolicyKeys()
    lines: KeyLines = {}
    path: str = ""
    """Path of the file; empty: there is none."""

    def at(self, key: str) -> str:
        """`/etc/adaptor/policy.yaml:3`, the line of a key."""
        return f"{self.path}:{self.lines.get(f'$.{key}', 1)}"

    def words(self) -> str:
        """`poll_interval at least 2m, limits.max_proc at most 512`; empty: it sets nothing."""
        return ", ".join(f"{key} {_bound_words(key, bound)}" for key, bound in _leaves(self.keys))


class GovernedSite(SiteConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A site that a policy binds; no configuration can write this field."""

    policy: Policy


def policy_of(site: SiteConfig) -> Policy:
    """The policy for a site; where nothing binds it, one without keys."""
    return site.policy if isinstance(site, GovernedSite) else Policy()


def is_governed(site: SiteConfig) -> bool:
    """True if its batch scheduler answers on this machine."""
    return site.ssh is None and load_backend(site.backend).over_ssh


def governed(site: SiteConfig, policy: Policy, at: str, lines: KeyLines, fail: Fail) -> SiteConfig:
    """The site within a policy; calls `fail` for a value beyond it.

    Args:
        at: the path of the site in its file, `lines` the lines of that.
    """
    terms = {}
    for key, bound in _leaves(policy.keys):
        for path, struct, field in _places(site, key, at):
            value, default = getattr(struct, field), getattr(_plain(struct), field)
            if not _beyond(key, value, bound):
                continue
            if path in lines or value != default:
                fail(
                    path,
                    f"{_shown(value)} is beyond what the operator allows, {_bound_words(key, bound)} "
                    f"({policy.at(key)}): change it, or remove it to get what is allowed",
                )
            terms[field] = bound
    fields = {name: getattr(site, name) for name in SiteConfig.__struct_fields__}
    if site.donation is not None:
        fields["donation"] = msgspec.structs.replace(site.donation, **terms)
    return GovernedSite(**fields, policy=policy)


_AT_LEAST = frozenset({"poll_interval", "donation.reserve_nodes", "donation.useful_time"})
"""Keys of which a policy sets the least, not the most."""
_HOURS = "donation.hours"


def _leaves(keys: msgspec.Struct, above: str = "") -> Iterator[tuple[str, Any]]:
    """The keys that a policy sets, with their values: `limits.max_proc`."""
    for name in keys.__struct_fields__:
        value = getattr(keys, name)
        if isinstance(value, msgspec.Struct):
            yield from _leaves(value, f"{above}{name}.")
        elif value is not None:
            yield f"{above}{name}", value


def _places(site: SiteConfig, key: str, at: str) -> Iterator[tuple[str, msgspec.Struct, str]]:
    """Places where a site sets a key: the path, and the object with the name of its field."""
    section, _, field = key.rpartition(".")
    struct = getattr(site, section) if section else site
    if struct is not None:
        yield f"{at}.{key}", struct, field
    for name, entry in site.partitions.items() if section == "limits" else ():
        yield f"{at}.partitions.{name}.{key}", entry.limits, field


def _plain(struct: msgspec.Struct) -> msgspec.Struct:
    """A struct of the same type with the defaults of all keys that have one."""
    match struct:
        case SiteConfig():
            return SiteConfig(backend=struct.backend)
        case DonationConfig():
            return DonationConfig(mode=struct.mode)
    return type(struct)()


def _beyond(key: str, value: Any, bound: Any) -> bool:
    """True if a value is more than a policy allows; `None` leaves a limit to the scheduler and the policy."""
    if key == _HOURS:
        return not minutes_of(value) <= minutes_of(bound)
    if value is None:
        return key.startswith("donation.")
    return bool(value < bound if key in _AT_LEAST else value > bound)


def _bound_words(key: str, bound: Any) -> str:
    if key == _HOURS:
        return f"within {', '.join(bound)}"
    return f"at {'least' if key in _AT_LEAST else 'most'} {_shown(bound)}"


def _shown(value: Any) -> str:
    match value:
        case None | ():
            return "no limit"
        case tuple():
            return ", ".join(value)
        case Duration():
            return format_duration(value)
        case HourlyRate():
            return format_hourly(value)
    return str(value)


def capped(limits: Limits, most: LimitsConfig) -> Limits:
    """Limits, also those of partitions, that are at most what a policy says."""
    return msgspec.structs.replace(
        limits,
        max_pending_requests=min(
            limits.max_pending_requests, most.max_pending_requests or limits.max_pending_requests
        ),
        max_pilots=min(limits.max_pilots, most.max_pilots or limits.max_pilots),
        max_proc=min(limits.max_proc, most.max_proc or limits.max_proc),
        max_tr=int(min(limits.max_tr, most.max_tr or limits.max_tr)),
        partitions={name: capped(each, most) for name, each in limits.partitions.items()},
    )
