"""The bag: which task runs next, retries, replicas (pure), and the journal that holds the truth."""
