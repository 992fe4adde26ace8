"""Bundles: what a bag stages, in one archive, copied once by each node to its own disk."""
