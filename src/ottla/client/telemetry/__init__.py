"""Metrics that a client pushes to brokers that ask for them (KIP-714).

    NetworkClient.poll ──► TelemetrySender ──► ClientTelemetry ──► TelemetryMachine: what is due, and what an answer means
                            to whom, when          └── metrics() ──► points, and what sums grew by

Nothing but the sender is loaded before a broker says that it takes metrics.
"""
