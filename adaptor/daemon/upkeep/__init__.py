"""What a daemon does besides its bags: it forgets old ones, tells of others, and measures itself."""
