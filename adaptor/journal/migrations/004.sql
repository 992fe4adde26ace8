CREATE TABLE granted_key (                  -- client keys with a grant
    name        TEXT PRIMARY KEY,
    certificate TEXT NOT NULL,              -- PEM
    allowed     BLOB NOT NULL,              -- msgpack Grant
    revoked     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE granted_bag (                  -- their bags; what forgotten ones have cost counts too
    bag         INTEGER PRIMARY KEY,
    name        TEXT NOT NULL               -- of the key
);
CREATE TABLE starts_seen (                  -- how the newest forecasts of others' starts held
    site    TEXT PRIMARY KEY,
    judged  BLOB NOT NULL                   -- msgpack of JudgedStart, the oldest first
);
