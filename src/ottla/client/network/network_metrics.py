"""Metrics of the connections of one `NetworkClient`, or of a consumer's two."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ottla.client.metrics.client_metrics import MetricsBuilder
from ottla.client.metrics.network_sensors import write_network
from ottla.client.network.network_client import NetworkClient
from ottla.client.network.request_view import copy_safely
from ottla.model import FOREVER


def write_client(builder: MetricsBuilder, kind: str, clients: Sequence[NetworkClient], now: float) -> None:
    """Write `kind`-metrics and `kind`-node-metrics; the first client is the one that has the metadata."""
    write_network(builder, kind, [client.sensors for client in clients], now)
    builder.select_group(f"{kind}-metrics").put(
        "requests-in-flight", sum(copy_safely(client.in_flight_requests.count) for client in clients)
    )
    age = clients[0].metadata.age(now)
    builder.put("metadata-age", age if age < FOREVER else math.nan)
