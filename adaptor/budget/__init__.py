"""Cost of pilot time, and the amount of it to buy."""
