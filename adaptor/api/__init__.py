"""What clients ask, and what they get."""
