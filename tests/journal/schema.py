"""The schema of the journal, and what goes with a change of it.

    python -m tests.journal.schema

renews after an edit of `adaptor/journal/schema.sql`, while its format is not released: the digest `SCHEMA`
in `adaptor/journal/database.py`, the recorded journals of this format, which get the new tables and columns,
and the shapes of what they hold as msgpack. It refuses if a release has the format: see
`fixtures/journals/README.md`.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from adaptor.api import Open, TaskInput
from adaptor.api.grants import Grant
from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.entries import Entry
from adaptor.decisions.failures.size_memory import KeptSizes
from adaptor.donation.idleness import Idleness
from adaptor.forecast.kept_starts import KeptStarts
from adaptor.journal import database
from adaptor.kinds.earlier import KindRecord
from adaptor.resources import OwnNeeds
from adaptor.scheduling.bag import Guard
from tests.shapes import misfits, shapes

ROOT = Path(__file__).parents[2]
JOURNALS = ROOT / "fixtures" / "journals"
STATES = ROOT / "fixtures" / "states"
SHAPES = JOURNALS / "shapes.json"
PACKED: list[Any] = [
    BagSpec,
    TaskInput,
    Open,
    OwnNeeds,
    Guard,
    Entry,
    Idleness,
    KeptStarts,
    KindRecord,
    Grant,
    KeptSizes,
]
"""Types that columns hold as msgpack."""
_RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\]", re.MULTILINE)


def digest(schema: str) -> str:
    """Digest of the schema as SQLite reads it: comments do not count."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema)
        made = [
            sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        ]
    bare = [" ".join(re.sub(r"--.*", "", sql).split()) for sql in made]
    return hashlib.sha256("\n".join(bare).encode()).hexdigest()[:16]


def present() -> str:
    """The digest of the schema as it is."""
    return digest((database.FOLDER / "schema.sql").read_text(encoding="utf-8"))


def format_in(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def recorded() -> list[Path]:
    """All recorded journals."""
    return sorted([*JOURNALS.glob("*.sqlite"), *STATES.glob("*/journal.sqlite")])


def released_in() -> str:
    """The release that has the present format; empty: none has."""
    releases = _RELEASE.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    states = (STATES / release / database.FILE for release in releases)
    return next(
        (path.parent.name for path in states if path.exists() and format_in(path) == database.FORMAT), ""
    )


def renew() -> None:
    """Raises SystemExit: the format is released, or what older journals hold could not be read any more."""
    if (release := released_in()) and present() != database.SCHEMA:
        raise SystemExit(
            f"release {release} has format {database.FORMAT}: write a migration, and raise FORMAT"
            " (fixtures/journals/README.md)"
        )
    now = shapes(PACKED)
    if problems := misfits(json.loads(SHAPES.read_text(encoding="utf-8")) if SHAPES.exists() else {}, now):
        raise SystemExit("\n".join(problems))
    SHAPES.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    source = Path(database.__file__)
    text = source.read_text(encoding="utf-8")
    source.write_text(re.sub(r'^SCHEMA = ".*"', f'SCHEMA = "{present()}"', text, flags=re.MULTILINE), "utf-8")
    for path in recorded():
        if format_in(path) == database.FORMAT:
            _rebuild(path)


def _rebuild(path: Path) -> None:
    """Give a journal the tables and columns of the present schema; what it has stays."""
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with closing(sqlite3.connect(new, isolation_level=None)) as db:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.executescript((database.FOLDER / "schema.sql").read_text(encoding="utf-8"))
        db.execute("ATTACH ? AS old", (str(path),))
        for pragma in ("user_version", "application_id"):
            (value,) = db.execute(f"PRAGMA old.{pragma}").fetchone()
            db.execute(f"PRAGMA main.{pragma} = {value}")
        for table, columns in _shared(db):
            names = ", ".join(columns)
            db.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM old.{table}")
        db.execute("DELETE FROM main.sqlite_sequence")
        db.execute("INSERT INTO main.sqlite_sequence SELECT * FROM old.sqlite_sequence")
        db.execute("DETACH old")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("VACUUM")
    new.replace(path)


def _shared(db: sqlite3.Connection) -> Iterator[tuple[str, list[str]]]:
    """Each table with the columns that both files have."""
    for (table,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
        if table.startswith("sqlite_"):
            continue
        before, now = (
            [row[1] for row in db.execute(f"PRAGMA {schema}.table_info({table})")]
            for schema in ("old", "main")
        )
        if columns := [name for name in now if name in before]:
            yield table, columns


if __name__ == "__main__":
    renew()
    print(f"renewed: {database.FORMAT} {present()}", file=sys.stderr)
