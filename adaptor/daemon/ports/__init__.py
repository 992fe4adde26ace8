"""The ports on which workers and clients are heard, and what strangers may cost there."""
