-- Tasks that may take their workers down: which lost attempts count against their tasks.
ALTER TABLE attempt ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0;
