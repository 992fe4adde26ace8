"""Credits in the running daemon: the ledger, what requests may cost, and what a bag is bought for."""
