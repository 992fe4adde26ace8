"""The encrypted link between daemon, workers and command line: keys, addresses, messages."""
