"""Push client metrics to brokers that subscribe to them (KIP-714).

    NetworkClient.poll ──► TelemetrySender ──► ClientTelemetry ──► TelemetryMachine: which request is due
                            chooses a broker    └── metrics() ──► points; with delta temporality, increases

Only `TelemetrySender` is imported until a broker announces the API GetTelemetrySubscriptions.
"""
