"""Who is told of bags: channels of notifications, and hooks."""

from __future__ import annotations

from typing import Literal

import msgspec

from adaptor.config.ranges import PositiveDuration
from adaptor.config.yaml_lines import Fail
from adaptor.did_you_mean import did_you_mean
from adaptor.units import Duration

NoticeEvent = Literal["end", "pause", "failure"]
"""A bag's end; its pause, as its budget holds no request; its first failed task."""


class ChannelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where messages go; exactly one of `url` and `file`."""

    url: str | None = None
    """As apprise takes it; the configuration must then be readable by its owner alone."""
    file: str | None = None
    """A file of mode 0600 with one URL a line."""
    events: tuple[NoticeEvent, ...] = ("end", "pause", "failure")
    """What it is told of."""


class NotifyConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    channels: dict[str, ChannelConfig] = {}
    """Where messages go, each channel under a name of your choice."""
    default: tuple[str, ...] = ()
    """The channels of bags without `--notify`."""


class HooksConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    on_bag_end: tuple[str, ...] = ()
    """A program and its arguments, run once when a bag has ended; empty: none."""
    timeout: PositiveDuration = Duration(60)
    """A hook that runs longer is ended."""


def check_notices(notify: NotifyConfig, hooks: HooksConfig, fail: Fail) -> None:
    """Check what the type of one key alone cannot say."""
    for name, channel in notify.channels.items():
        at = f"$.notify.channels.{name}"
        if not name.replace("-", "").replace("_", "").isalnum():
            fail(at, "the name of a channel consists of letters, digits, '-' and '_'")
        if (channel.url is None) == (channel.file is None):
            fail(at, "give either `url`, or `file`: a file of mode 0600 with one URL a line")
        if channel.url is not None and "://" not in channel.url:
            fail(f"{at}.url", "is no URL such as mailto://… or json://…")
    for name in notify.default:
        if name not in notify.channels:
            hint = did_you_mean(name, notify.channels, f"there are {', '.join(notify.channels) or 'none'}")
            fail("$.notify.default", f"there is no channel {name!r} ({hint})")
    if hooks.on_bag_end and "\0" in "".join(hooks.on_bag_end):
        fail("$.hooks.on_bag_end", "an argument cannot contain a NUL byte")
