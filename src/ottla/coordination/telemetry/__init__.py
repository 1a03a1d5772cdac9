"""Metrics that clients push to a broker (KIP-714): what each client has to push and when, and what it has pushed. Pure.

    ConfigRecords ──► Subscription ──► Instances: the response to a client
                                          └── accepted ──► PushedMetrics: the last values, by client

Nothing of it is stored in a log: a client that connects to another broker sends its identity and pushes there.
"""
