"""Amount and place of the processors to buy. Pure."""
