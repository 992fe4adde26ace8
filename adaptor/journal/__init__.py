"""The journal in SQLite: its format and migrations, rows, recovery, and the answers for users."""
