"""Reads topics, in batches and streams: the driver plans, and each task reads a range of offsets."""
