"""PBS in its dialects."""
