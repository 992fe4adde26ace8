"""Tariffs, budgets and the ledger of credits. Pure."""
