"""Commands of every day."""
