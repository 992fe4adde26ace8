-- A long life: bags may be forgotten, and what they have cost and taught stays.
CREATE TABLE new_bag (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    spec        BLOB NOT NULL,
    name        TEXT NOT NULL,
    tasks       INTEGER NOT NULL,
    submitted   REAL NOT NULL,
    ended       REAL,
    waiting     INTEGER NOT NULL,
    leased      INTEGER NOT NULL DEFAULT 0,
    done        INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    cancelled   INTEGER NOT NULL DEFAULT 0,
    retried     INTEGER NOT NULL DEFAULT 0,
    runtime     REAL NOT NULL DEFAULT 0,
    first_done  REAL,
    user_change TEXT,
    user_changed REAL
);
INSERT INTO new_bag SELECT
    id, spec, name, tasks, submitted, ended, waiting, leased, done, failed, cancelled, retried, runtime, first_done,
    user_change, user_changed FROM bag;
DROP TABLE bag;
ALTER TABLE new_bag RENAME TO bag;
CREATE INDEX bag_unended ON bag (id) WHERE ended IS NULL;
CREATE TABLE forgotten (
    bag         INTEGER PRIMARY KEY,
    cpus        INTEGER NOT NULL
);
CREATE TABLE forecast_past (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    counted     INTEGER NOT NULL,
    cost_held   INTEGER NOT NULL,
    end_held    INTEGER NOT NULL,
    not_counted BLOB NOT NULL
);
CREATE TABLE new_pilot (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    site            TEXT NOT NULL,
    tag             TEXT NOT NULL UNIQUE,
    job             TEXT,
    state           TEXT NOT NULL,
    p               INTEGER NOT NULL,
    tr              INTEGER NOT NULL,
    submitted       REAL NOT NULL,
    predicted_start REAL,
    started         REAL,
    ended           REAL,
    freed           INTEGER NOT NULL DEFAULT 0,
    freed_at_sum    REAL NOT NULL DEFAULT 0,
    reason          TEXT NOT NULL,
    end_reason      TEXT NOT NULL DEFAULT '',
    bag             INTEGER,
    donated_node    TEXT NOT NULL DEFAULT '',
    reclaim_time    REAL,
    past_used       REAL NOT NULL DEFAULT 0
);
INSERT INTO new_pilot SELECT
    id, site, tag, job, state, p, tr, submitted, predicted_start, started, ended, freed, freed_at_sum, reason,
    end_reason, bag, donated_node, reclaim_time, 0 FROM pilot;
DROP TABLE pilot;
ALTER TABLE new_pilot RENAME TO pilot;
CREATE INDEX pilot_by_state ON pilot (state);
CREATE TABLE wait (
    pilot           INTEGER PRIMARY KEY,
    site            TEXT NOT NULL,
    p               INTEGER NOT NULL,
    predicted_start REAL NOT NULL,
    started         REAL,
    ended           REAL
);
CREATE INDEX decision_by_pilot ON decision (pilot) WHERE pilot IS NOT NULL;
ALTER TABLE credit ADD COLUMN pilot INTEGER;
ALTER TABLE credit ADD COLUMN bag INTEGER;
UPDATE credit SET pilot = entry_pilot(entry), bag = entry_bag(entry);
CREATE INDEX credit_by_pilot ON credit (pilot) WHERE pilot IS NOT NULL;
CREATE INDEX credit_by_bag ON credit (bag) WHERE bag IS NOT NULL;
CREATE TABLE credit_past (
    site    TEXT NOT NULL,
    billed  REAL NOT NULL,
    used    INTEGER NOT NULL,
    wasted  INTEGER NOT NULL,
    at      REAL NOT NULL,
    PRIMARY KEY (site, billed)
) WITHOUT ROWID;
CREATE TABLE notice (
    bag     INTEGER NOT NULL,
    event   TEXT NOT NULL,
    channel TEXT NOT NULL,
    text    TEXT NOT NULL,
    at      REAL NOT NULL,
    state   TEXT NOT NULL DEFAULT 'due',
    PRIMARY KEY (bag, event, channel)
) WITHOUT ROWID;
CREATE INDEX notice_due ON notice (at) WHERE state = 'due';
