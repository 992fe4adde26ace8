"""Private files of this machine, or of another one over ssh, by one interface."""
