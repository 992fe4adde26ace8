"""The journal in SQLite: schema, rows, recovery, and what it tells a user."""
