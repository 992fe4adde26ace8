"""Pictures, tables and pages as files."""
