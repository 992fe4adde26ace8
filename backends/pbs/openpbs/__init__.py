"""OpenPBS and PBS Professional."""
