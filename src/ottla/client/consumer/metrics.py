"""Build the result of `Consumer.metrics()` from the sensors of the components and the state of the partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.subscription_state import TopicPartitionState
from ottla.client.metrics.client_metrics import ClientMetrics, MetricsBuilder
from ottla.client.metrics.descriptions import CONSUMER_CALLS
from ottla.client.metrics.fetch_sensors import MANAGER
from ottla.client.metrics.group_sensors import GROUP
from ottla.client.metrics.network_sensors import write_counted, write_spread
from ottla.client.network.network_metrics import write_client
from ottla.client.network.request_view import copy_safely

if TYPE_CHECKING:
    from ottla.client.consumer.group.consumer_coordinator import ConsumerCoordinator


def take_metrics(core: ConsumerCore) -> ClientMetrics:
    """Return the current metrics. May be called from any thread."""
    now, builder, coordinator = core.clock.monotonic(), MetricsBuilder(core.client_id), core.coordinator
    thread = None if coordinator is None else coordinator.heartbeat_thread
    networks = [core.client.client] + ([] if thread is None else [thread.client.client])
    write_client(builder, "consumer", networks, now)
    core.polls.write(builder, now)
    core.calls.write(builder, now, CONSUMER_CALLS)
    core.fetcher.sensors.write(builder, now)
    write_lags(builder, core)
    write_leads(builder, core)
    if coordinator is not None:
        write_group(builder, core, coordinator, now)
    return builder.build()


def write_lags(builder: MetricsBuilder, core: ConsumerCore) -> None:
    """Write the lag of each partition with a known position and end, and the largest lag."""
    states = copy_safely(core.subscriptions.states)
    lags = {tp: lag for tp, state in states.items() if (lag := lag_of(state)) is not None}
    for tp, lag in lags.items():
        builder.select_group(MANAGER, topic=tp.topic, partition=tp.partition).put("records-lag", lag)
    builder.select_group(MANAGER).put("records-lag-max", max(lags.values(), default=float("nan")))
    builder.put("buffered-bytes", copy_safely(lambda: core.fetcher.buffered_bytes))


def write_leads(builder: MetricsBuilder, core: ConsumerCore) -> None:
    """Write the lead and the fetched replica of each partition, and the smallest lead."""
    states = copy_safely(core.subscriptions.states)
    leads = {tp: lead for tp, state in states.items() if (lead := lead_of(state)) is not None}
    for tp, lead in leads.items():
        builder.select_group(MANAGER, topic=tp.topic, partition=tp.partition).put("records-lead", lead)
        builder.put("preferred-read-replica", core.fetcher.preferred_replica(tp))
    builder.select_group(MANAGER).put("records-lead-min", min(leads.values(), default=float("nan")))


def lead_of(state: TopicPartitionState) -> int | None:
    """Return the offsets between the last known start and the position; None if unknown."""
    position, start = state.position, state.log_start
    return None if position is None or start is None or start < 0 else max(0, position - start)


def lag_of(state: TopicPartitionState) -> int | None:
    """Return the offsets between the position and the last known end; None if unknown."""
    position, end = state.position, state.readable_to
    return None if position is None or end is None else max(0, end - position)


def write_group(builder: MetricsBuilder, core: ConsumerCore, coordinator: ConsumerCoordinator, now: float) -> None:
    """Write the metrics of the group membership and of commits."""
    core.group_sensors.write(builder, now)
    builder.put("assigned-partitions", len(copy_safely(core.subscriptions.states)))
    commits = core.client.client.sensors.registry.read(coordinator.commits.latency, now)
    write_counted(builder.select_group(GROUP), "commit", [commits])
    write_spread(builder, "commit-latency", commits, 1000)
    for name, sensor in coordinator.listener_times.items():
        write_spread(builder, f"partition-{name}-latency", core.client.client.sensors.registry.read(sensor, now), 1000)
