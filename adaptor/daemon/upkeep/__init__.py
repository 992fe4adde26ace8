"""What a daemon does besides its bags: it forgets old ones, sends messages about others, and measures
itself."""
