"""What pilot time costs, and how much of it to buy."""
