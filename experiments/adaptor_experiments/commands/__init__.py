"""Commands for traces and experiments."""
