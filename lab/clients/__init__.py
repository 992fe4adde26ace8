"""Test suites that others wrote for their executors, run against the adaptor: `make clients`."""
