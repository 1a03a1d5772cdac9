"""`ottla bench`: the throughput and the latency of a cluster."""
