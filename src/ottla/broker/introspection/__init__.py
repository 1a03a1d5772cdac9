"""Metrics, and live views of a running broker (decision 0093).

    node ──► broker_snapshot, taken in the event loop ──► introspection_socket ──► `ottla trace broker`, the console
    groups, purgatory, log cleaner ──► events ──┘
    metrics ──► metrics_page: `/metrics` for Prometheus, with client metrics (client_telemetry, pushed_metrics_page)

The views are loaded only if `trace.folder` is set, and events are sent only while a reader is connected.
"""
