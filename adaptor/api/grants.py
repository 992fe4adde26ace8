"""Keys with a grant: what programs may do whose users do not watch them, such as agents.

A key is a client certificate of its own. The daemon knows its grant, and holds the bags that were submitted
with it to that (`daemon/client/admission.py`); every other question is closed to it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from adaptor.api.question import KeyAccess, Question, Time

KeyName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}\Z")]
"""Part of the name of a file."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Rights and limits of a key."""

    budget: Annotated[float, msgspec.Meta(gt=0)]
    """Credits that all its bags may cost together, from the first one on."""
    max_proc: Annotated[int, msgspec.Meta(ge=1)]
    """Processors that their pilots may hold at a time, queued ones included."""
    canary: Annotated[int, msgspec.Meta(ge=1)] = 3
    """Tasks of each bag that must succeed before more start, at least."""
    read_only: bool = False
    all_bags: bool = False  # whether it may read the bags of others too
    until: Time | None = None  # its end; its bags go on


class KeyView(msgspec.Struct, frozen=True, kw_only=True):
    """A key, and what its bags have cost."""

    name: str
    grant: Grant
    revoked: bool
    used: float  # credits, of forgotten bags too
    reserved: float
    left: float
    held: int  # processors of its pilots, queued and running
    bags: int  # submitted with it, forgotten ones included


class GetKeys(Question[list[KeyView]], frozen=True):
    """All keys; asked with a key, only that."""

    for_keys = KeyAccess.PUBLIC


class GrantKey(Question[str], frozen=True):
    """Make a key, or give one that exists another grant; the path of its access file."""

    writes = True

    name: KeyName
    grant: Grant


class RevokeKey(Question[None], frozen=True):
    """Revoke a key: it gets no more answers; its bags go on."""

    writes = True

    name: str
