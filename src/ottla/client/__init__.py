"""Clients with the anatomy of Kafka's own: a producer, a consumer, an admin.

    Producer → RecordAccumulator → Sender ─────────┐
    Consumer → Fetcher → ConsumerNetworkClient ────┼─► NetworkClient → network.Selector → broker
    Admin ──────────────► ConsumerNetworkClient ───┘       └─ Metadata, ApiVersions, InFlightRequests

What decides is pure and takes `now`; the shells around it hold a clock and a selector.
"""
