CREATE TABLE raw_forecast (                 -- ends as they were simulated: what came of them calibrates later forecasts
    bag         INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    made        REAL NOT NULL,
    unit        REAL NOT NULL,              -- seconds that are nearly nothing
    low         REAL NOT NULL,
    value       REAL NOT NULL,
    high        REAL NOT NULL,
    PRIMARY KEY (bag, kind)
) WITHOUT ROWID;
