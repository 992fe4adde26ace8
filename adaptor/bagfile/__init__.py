"""Bag files and bag options as people write them."""
