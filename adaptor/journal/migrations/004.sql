CREATE TABLE starts_seen (                  -- how the newest forecasts of others' starts held
    site    TEXT PRIMARY KEY,
    judged  BLOB NOT NULL                   -- msgpack of JudgedStart, the oldest first
);
