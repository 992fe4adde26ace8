"""Keys with a grant: made, changed, revoked and shown."""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter

import msgspec

from adaptor import api
from adaptor.budget.accounting.credits import in_credits
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.server import write_key_access
from adaptor.errors import UsageError
from adaptor.journal.grant_rows import GrantedKey, keep_key, limit_of
from adaptor.protocol.access import key_access
from adaptor.protocol.keys import new_identity
from adaptor.units import counted, format_instant


@answers(api.GrantKey)
def _grant(running: RunningDaemon, question: api.GrantKey) -> str:
    """Make or change a key. Raises BudgetError, UsageError: the grant makes no sense."""
    core, grant = running.core, question.grant
    if grant.until is not None and not grant.until > core.now():
        raise UsageError(f"the grant would end at {format_instant(grant.until)}, which is in the past")
    known = core.grants.keys.get(question.name)
    path = core.directory / key_access(question.name)
    if known is None or known.revoked or not path.exists():
        own = new_identity(f"key {question.name} {secrets.token_hex(3)}")
        certificate = own.certificate
    else:
        own, certificate = None, known.certificate
    key = GrantedKey(name=question.name, certificate=certificate, grant=grant)
    limit, parties = limit_of(key), core.server.clients.party
    with core.journal.transaction(durable=True) as db:
        keep_key(db, key, core.now(), f"granted {_words(grant)}")
    if known is not None:
        parties.refuse(known.certificate)
    core.grants.enter(key)
    core.ledger.limit_together(limit)
    parties.accept(certificate)
    write_key_access(core.directory, key.name, own)
    running.wake_sites()
    return str(path)


@answers(api.RevokeKey)
def _revoke(running: RunningDaemon, question: api.RevokeKey) -> None:
    """Revoke a key. Raises UsageError: there is no such key."""
    core, known = running.core, running.core.grants.keys.get(question.name)
    if known is None or known.revoked:
        raise UsageError(f"there is no key {question.name}; see adaptor mcp keys")
    key = msgspec.structs.replace(known, revoked=True)
    with core.journal.transaction(durable=True) as db:
        keep_key(db, key, core.now(), "revoked")
    core.grants.enter(key)
    core.server.clients.party.refuse(key.certificate)
    with contextlib.suppress(OSError):
        (core.directory / key_access(key.name)).unlink()


@answers(api.GetKeys)
def _keys(running: RunningDaemon, _: api.GetKeys) -> list[api.KeyView]:
    core, views = running.core, []
    bags = Counter(core.grants.key_of.values())
    for key in core.grants.keys.values():
        at = core.ledger.joint(key.name)
        views.append(
            api.KeyView(
                name=key.name,
                grant=key.grant,
                revoked=key.revoked,
                used=in_credits(at.used),
                reserved=in_credits(at.reserved),
                left=in_credits(max(0, at.left)),
                held=at.held,
                bags=bags[key.name],
            )
        )
    return views


def _words(grant: api.Grant) -> str:
    """`20 credits, 64 processors, canary 3`."""
    told = [f"{grant.budget:g} credits", counted(grant.max_proc, "processor"), f"canary {grant.canary}"]
    told += ["read-only"] if grant.read_only else []
    told += ["reads all bags"] if grant.all_bags else []
    told += [f"until {format_instant(grant.until)}"] if grant.until is not None else []
    return ", ".join(told)
