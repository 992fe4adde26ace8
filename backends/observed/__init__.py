"""A cluster as every scheduler's parsers show it: rows, and what is made of them once and for all."""
