-- Donated nodes: a pilot may be one, and how long nodes stay idle is learned.
ALTER TABLE pilot ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE pilot ADD COLUMN yielded REAL;
CREATE TABLE idleness (
    site    TEXT PRIMARY KEY,
    known   BLOB NOT NULL
);
