-- Kinds of task: what bags that end from now on show of them.

CREATE TABLE kind (
    key         TEXT NOT NULL,
    site        TEXT NOT NULL,
    bag         INTEGER NOT NULL,
    ended       REAL NOT NULL,
    record      BLOB NOT NULL,
    PRIMARY KEY (key, site, bag)
) WITHOUT ROWID;
CREATE INDEX kind_by_bag ON kind (bag);
CREATE INDEX kind_by_end ON kind (ended);
