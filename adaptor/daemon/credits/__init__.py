"""Credits in the running daemon: the ledger in the journal, at the prices of the configuration."""
