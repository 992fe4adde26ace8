"""What a daemon does beside its bags: it forgets old ones, tells of others, and measures itself."""
