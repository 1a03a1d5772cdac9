"""Writes rows to topics; rows that cannot be written become dead letters or errors."""
