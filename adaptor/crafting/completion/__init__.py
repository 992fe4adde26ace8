"""The completion heuristic: sets of requests, compared by when they complete the bag."""
