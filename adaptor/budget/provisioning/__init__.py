"""How much to buy, and where. Pure."""
