"""Sites that are reached over ssh: their machines, and the ways by which their workers reach us."""
