"""Metrics that clients push to a broker (KIP-714): who is to push what and when, and what they have pushed. Pure.

    ConfigRecords ──► Subscription ──► Instances: what a client is answered
                                          └── taken ──► PushedMetrics: the last values, by client

Nothing of it is kept in a log: a client that meets another broker tells it who it is, and pushes there.
"""
