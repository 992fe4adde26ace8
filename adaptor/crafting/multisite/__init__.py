"""Division of the waiting tasks among several sites that serve the same bags. Pure."""
