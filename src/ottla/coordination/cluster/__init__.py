"""The cluster's metadata: events in, records of `__cluster_metadata` out."""
