-- Credits: a pilot may serve one bag only, and the ledger has its entries here.
ALTER TABLE pilot ADD COLUMN bag INTEGER;
CREATE TABLE credit (
    id      INTEGER PRIMARY KEY,
    entry   BLOB NOT NULL
);
