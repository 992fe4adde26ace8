"""The live page of bags, queues and pilots, its static form, and its numbers for Prometheus."""
