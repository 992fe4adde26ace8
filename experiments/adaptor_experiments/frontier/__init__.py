"""How near bags with a budget, a deadline or a preference come to the best cost and time."""
