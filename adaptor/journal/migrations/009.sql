-- Bags that stay open, guard rails of bags, tasks of several sizes, forecasts of all bags.

-- Open bags, and the events of bags: tasks that ended before have theirs in the order of their numbers.
ALTER TABLE bag ADD COLUMN open INTEGER NOT NULL DEFAULT 0;
ALTER TABLE bag ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE bag ADD COLUMN client_key TEXT;
CREATE UNIQUE INDEX bag_by_key ON bag (client_key) WHERE client_key IS NOT NULL;
CREATE TABLE appended (
    bag         INTEGER NOT NULL,
    client_key  TEXT NOT NULL,
    first       INTEGER NOT NULL,
    tasks       INTEGER NOT NULL,
    PRIMARY KEY (bag, client_key)
) WITHOUT ROWID;
ALTER TABLE bag ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE bag ADD COLUMN linked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN event INTEGER;
ALTER TABLE task ADD COLUMN id TEXT;
CREATE UNIQUE INDEX task_by_id ON task (bag, id) WHERE id IS NOT NULL;
UPDATE bag SET events = tasks;
UPDATE task SET event = number + 1 WHERE state IN ('done', 'failed', 'cancelled');
CREATE INDEX task_by_event ON task (bag, event) WHERE event IS NOT NULL;
ALTER TABLE bag ADD COLUMN guard BLOB;
ALTER TABLE pilot ADD COLUMN partition TEXT NOT NULL DEFAULT '';
ALTER TABLE attempt ADD COLUMN answer BLOB;
ALTER TABLE wait ADD COLUMN submitted REAL;
ALTER TABLE forecast_past ADD COLUMN costed INTEGER NOT NULL DEFAULT 0;
UPDATE forecast_past SET costed = counted;
ALTER TABLE forecast RENAME TO forecast_before;
CREATE TABLE forecast (
    bag         INTEGER PRIMARY KEY,
    made        REAL NOT NULL,
    finished    INTEGER NOT NULL,
    tasks       INTEGER NOT NULL,
    cost_low    REAL,
    cost_value  REAL,
    cost_high   REAL,
    end_low     REAL NOT NULL,
    end_value   REAL NOT NULL,
    end_high    REAL NOT NULL
);
INSERT INTO forecast SELECT * FROM forecast_before;
DROP TABLE forecast_before;

-- What tasks need in place of what their bags say, and what they held.
ALTER TABLE task ADD COLUMN needs BLOB;
ALTER TABLE task ADD COLUMN memory INTEGER;
ALTER TABLE attempt ADD COLUMN processors INTEGER;

-- Which shares of their limits local jobs ran, and the time that a forgotten pilot had asked for.
CREATE TABLE local_run (
    id          INTEGER PRIMARY KEY,
    site        TEXT NOT NULL,
    owner       TEXT NOT NULL,
    run_limit   INTEGER NOT NULL,
    share       REAL NOT NULL
);
CREATE INDEX local_run_by_site ON local_run (site, id);
ALTER TABLE wait ADD COLUMN tr INTEGER;
