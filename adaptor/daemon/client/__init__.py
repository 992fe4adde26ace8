"""The side of the command line: one question, one answer."""
