"""Committed offsets of groups: events in, records of `__consumer_offsets` out."""
