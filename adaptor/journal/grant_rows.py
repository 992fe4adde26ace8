"""Keys with a grant, which bags were submitted with them, and the limits that those have together."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

import msgspec

from adaptor.api import Grant
from adaptor.budget.accounting.credits import millionths
from adaptor.budget.accounting.entries import JointLimit
from adaptor.journal.decision_rows import insert_decision
from adaptor.journal.journal import Journal
from adaptor.protocol.channel import fingerprint

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(Grant)


class GrantedKey(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    certificate: str  # PEM
    grant: Grant
    revoked: bool = False


def granted_keys(db: sqlite3.Connection) -> list[GrantedKey]:
    """All of them, revoked ones too: their bags go on within the limits."""
    rows = db.execute("SELECT name, certificate, allowed, revoked FROM granted_key ORDER BY name")
    return [
        GrantedKey(name=name, certificate=certificate, grant=_unpack.decode(grant), revoked=bool(revoked))
        for name, certificate, grant, revoked in rows
    ]


def keep_key(db: sqlite3.Connection, key: GrantedKey, now: float, told: str) -> None:
    """Write a key down in place of one of this name, with a line for people; in a transaction."""
    db.execute(
        "INSERT OR REPLACE INTO granted_key (name, certificate, allowed, revoked) VALUES (?, ?, ?, ?)",
        (key.name, key.certificate, _pack(key.grant), key.revoked),
    )
    note_key(db, key.name, now, told)


def note_key(db: sqlite3.Connection, name: str, now: float, told: str, bags: Collection[int] = ()) -> None:
    """A line of what was done with a key, and with which bags, in a transaction."""
    insert_decision(db, now, "", "key", f"key {name}: {told}", bags=bags)


def kept_of(db: sqlite3.Connection, name: str) -> dict[int, str]:
    """Name of each bag of a key that is not forgotten, in ascending order of ids."""
    rows = db.execute(
        "SELECT bag, bag.name FROM granted_bag JOIN bag ON bag.id = bag WHERE granted_bag.name = ?"
        " ORDER BY bag",
        (name,),
    )
    return dict(rows)


def unfinished_of(db: sqlite3.Connection, name: str) -> int:
    """The number of bags of a key that have not ended, those that are not published among them."""
    (count,) = db.execute(
        "SELECT (SELECT COUNT(*) FROM granted_bag JOIN bag ON bag.id = granted_bag.bag"
        " WHERE granted_bag.name = ?1 AND ended IS NULL)"
        " + (SELECT COUNT(*) FROM unpublished WHERE substr(client_key, 1, length(?1) + 1) = ?1 || ':')",
        (name,),
    ).fetchone()
    return int(count)


def pilots_of(db: sqlite3.Connection, name: str) -> set[int]:
    """The pilots of the bags of a key."""
    rows = db.execute(
        "SELECT id FROM pilot JOIN granted_bag ON granted_bag.bag = pilot.bag WHERE granted_bag.name = ?",
        (name,),
    )
    return {id for (id,) in rows}


def limit_of(key: GrantedKey) -> JointLimit:
    """The joint limit of a key's bags. Raises BudgetError: its budget is no number of credits."""
    return JointLimit(
        key=key.name, amount=millionths(key.grant.budget, "a budget"), processors=key.grant.max_proc
    )


class Grants:
    """Whatever it changes stands in the journal. After a JournalError it has to be made again."""

    def __init__(self, journal: Journal) -> None:
        """Raises JournalError: they cannot be read."""
        self.key_of: dict[int, str] = journal.read(
            lambda db: dict(db.execute("SELECT bag, name FROM granted_bag"))
        )
        """Name of the key of each bag."""
        self.keys: dict[str, GrantedKey] = {}  # by name
        self._by_fingerprint: dict[str, str] = {}
        for key in journal.read(granted_keys):
            self.enter(key)

    def enter(self, key: GrantedKey) -> None:
        """A new key, or another grant of one; an earlier certificate of it counts no more."""
        if (known := self.keys.get(key.name)) is not None:
            self._by_fingerprint.pop(fingerprint(known.certificate), None)
        self.keys[key.name] = key
        if not key.revoked:
            self._by_fingerprint[fingerprint(key.certificate)] = key.name

    @property
    def limits(self) -> list[JointLimit]:
        return [limit_of(key) for key in self.keys.values()]

    def named_by(self, identity: str) -> GrantedKey | None:
        """The key whose certificate has this fingerprint; None: it was revoked."""
        name = self._by_fingerprint.get(identity)
        return None if name is None else self.keys[name]

    def add_bag(self, db: sqlite3.Connection, name: str, bag: int, now: float, told: str) -> None:
        """Write down whose bag it is, and a line of it, in the transaction that writes the bag."""
        db.execute("INSERT INTO granted_bag (bag, name) VALUES (?, ?)", (bag, name))
        note_key(db, name, now, told, [bag])
        self.key_of[bag] = name
