CREATE TABLE staged (
    bag         INTEGER PRIMARY KEY,
    client_key  TEXT NOT NULL UNIQUE,
    tasks       INTEGER NOT NULL,
    at          REAL NOT NULL
);
