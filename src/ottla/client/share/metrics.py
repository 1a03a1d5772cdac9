"""Build the result of `ShareConsumer.metrics()`, with the groups and names of the Java client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.metrics.client_metrics import ClientMetrics, MetricsBuilder
from ottla.client.metrics.descriptions import SHARE_CALLS
from ottla.client.metrics.network_sensors import write_amount
from ottla.client.network.network_metrics import write_client
from ottla.client.network.request_view import copy_safely

if TYPE_CHECKING:
    from ottla.client.share.share_consumer_core import ShareConsumerCore

KIND = "consumer-share"
MANAGER = "consumer-share-fetch-manager-metrics"
GROUP = "consumer-share-coordinator-metrics"


def take_metrics(core: ShareConsumerCore) -> ClientMetrics:
    """Return the current metrics. May be called from any thread."""
    now, builder = core.clock.monotonic(), MetricsBuilder(core.client_id)
    thread = core.coordinator.heartbeat_thread
    networks = [core.client.client] + ([] if thread is None else [thread.client.client])
    write_client(builder, KIND, networks, now)
    core.polls.write(builder, now, f"{KIND}-metrics")
    core.calls.write(builder, now, SHARE_CALLS)
    core.fetcher.sensors.write(builder, now, MANAGER)
    read = core.client.client.sensors.registry.read
    builder.select_group(MANAGER).put("buffered-bytes", copy_safely(lambda: core.fetcher.buffered_bytes))
    write_amount(builder, "acknowledgements-send", read(core.acknowledgements, now))
    write_amount(builder, "acknowledgements-error", read(core.failures, now))
    core.group_sensors.write_heartbeats(builder, now, GROUP)
    builder.put("assigned-partitions", len(core.coordinator.assignment))
    return builder.build()
