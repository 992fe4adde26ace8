"""Commands for daemon, sites and pilots."""
