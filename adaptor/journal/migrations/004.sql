-- Columns named by what they hold: `node` is the word for where an attempt ran, and `freed_at` was a sum.
ALTER TABLE pilot RENAME COLUMN node TO donated_node;
ALTER TABLE pilot RENAME COLUMN yielded TO reclaim_time;
ALTER TABLE pilot RENAME COLUMN freed_at TO freed_at_sum;
