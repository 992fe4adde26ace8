"""Commands for budgets and quotes."""
