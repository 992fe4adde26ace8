"""Tools for agents by the Model Context Protocol, and the keys whose grants bound what those may do."""
