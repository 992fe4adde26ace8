-- Kinds of task: what bags show of them from now on.

CREATE TABLE kind (
    key         TEXT NOT NULL,
    site        TEXT NOT NULL,
    bag         INTEGER NOT NULL,
    at          REAL NOT NULL,
    record      BLOB NOT NULL,
    PRIMARY KEY (key, site, bag)
) WITHOUT ROWID;
CREATE INDEX kind_by_bag ON kind (bag);
CREATE INDEX kind_by_time ON kind (at);
