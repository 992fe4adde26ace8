-- How often forecasts hold: the first of each bag is kept, and what its user changed afterwards.
ALTER TABLE bag ADD COLUMN user_change TEXT;
ALTER TABLE bag ADD COLUMN user_changed REAL;
CREATE TABLE forecast (
    bag         INTEGER PRIMARY KEY,
    made        REAL NOT NULL,
    finished    INTEGER NOT NULL,
    tasks       INTEGER NOT NULL,
    cost_low    REAL NOT NULL,
    cost_value  REAL NOT NULL,
    cost_high   REAL NOT NULL,
    end_low     REAL NOT NULL,
    end_value   REAL NOT NULL,
    end_high    REAL NOT NULL
);
