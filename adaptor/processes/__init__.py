"""A worker within its bounds: how it is started, timed and ended, and written down. Standard library only."""
