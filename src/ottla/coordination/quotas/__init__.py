"""Client quotas: limits of users, client ids and addresses, and the measurement of their use.

    limits (the one that applies to a client) ──► Rate or TokenBucket of the clients that share it ──► throttle time

Pure: time is an argument. `cluster/` stores the limits, the broker measures.
"""
