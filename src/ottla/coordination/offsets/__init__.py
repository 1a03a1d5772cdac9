"""Committed offsets of groups, as records of `__consumer_offsets` and by group."""
