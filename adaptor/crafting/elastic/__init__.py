"""The heuristic `elastic`: many narrow pilots, each fitted to its hole, the rest queued. Pure."""
