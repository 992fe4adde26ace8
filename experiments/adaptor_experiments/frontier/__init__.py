"""Distance of bags with a budget, a deadline or a preference to the best cost and time."""
