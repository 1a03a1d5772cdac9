"""What `Consumer.metrics()` tells: what its parts count, and how far its partitions are."""

from __future__ import annotations

from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.group.consumer_coordinator import ConsumerCoordinator
from ottla.client.consumer.subscription_state import TopicPartitionState
from ottla.client.metrics.client_metrics import ClientMetrics, Sheet
from ottla.client.metrics.descriptions import CONSUMER_CALLS
from ottla.client.metrics.fetch_sensors import MANAGER
from ottla.client.metrics.group_sensors import GROUP
from ottla.client.metrics.network_sensors import write_counted, write_spread
from ottla.client.network.network_metrics import write_client
from ottla.client.network.request_view import copied


def take_metrics(core: ConsumerCore) -> ClientMetrics:
    """The numbers as they are; from any thread."""
    now, sheet, coordinator = core.clock.monotonic(), Sheet(core.client_id), core.coordinator
    thread = None if coordinator is None else coordinator.heartbeat_thread
    networks = [core.client.client] + ([] if thread is None else [thread.client.client])
    write_client(sheet, "consumer", networks, now)
    core.polls.write(sheet, now)
    core.calls.write(sheet, now, CONSUMER_CALLS)
    core.fetcher.sensors.write(sheet, now)
    write_lags(sheet, core)
    write_leads(sheet, core)
    if coordinator is not None:
        write_group(sheet, core, coordinator, now)
    return sheet.whole()


def write_lags(sheet: Sheet, core: ConsumerCore) -> None:
    """Of each partition of which both ends are known, and the most."""
    states = copied(core.subscriptions.states)
    lags = {tp: lag for tp, state in states.items() if (lag := lag_of(state)) is not None}
    for tp, lag in lags.items():
        sheet.of(MANAGER, topic=tp.topic, partition=tp.partition).put("records-lag", lag)
    sheet.of(MANAGER).put("records-lag-max", max(lags.values(), default=float("nan")))
    sheet.put("buffered-bytes", copied(lambda: core.fetcher.buffered_bytes))


def write_leads(sheet: Sheet, core: ConsumerCore) -> None:
    """How far each partition is from its beginning, the least of it, and whom it is read from."""
    states = copied(core.subscriptions.states)
    leads = {tp: lead for tp, state in states.items() if (lead := lead_of(state)) is not None}
    for tp, lead in leads.items():
        sheet.of(MANAGER, topic=tp.topic, partition=tp.partition).put("records-lead", lead)
        sheet.put("preferred-read-replica", core.fetcher.preferred_replica(tp))
    sheet.of(MANAGER).put("records-lead-min", min(leads.values(), default=float("nan")))


def lead_of(state: TopicPartitionState) -> int | None:
    """Offsets from the beginning as last heard of; None where that is not known."""
    position, start = state.position, state.log_start
    return None if position is None or start is None or start < 0 else max(0, position - start)


def lag_of(state: TopicPartitionState) -> int | None:
    """Offsets to the end as last heard of; None before anything was heard."""
    position, end = state.position, state.readable_to
    return None if position is None or end is None else max(0, end - position)


def write_group(sheet: Sheet, core: ConsumerCore, coordinator: ConsumerCoordinator, now: float) -> None:
    """The place in the group, and commits."""
    core.group_sensors.write(sheet, now)
    sheet.put("assigned-partitions", len(copied(core.subscriptions.states)))
    commits = core.client.client.sensors.registry.read(coordinator.commits.latency, now)
    write_counted(sheet.of(GROUP), "commit", [commits])
    write_spread(sheet, "commit-latency", commits, 1000)
    for name, sensor in coordinator.listener_times.items():
        write_spread(sheet, f"partition-{name}-latency", core.client.client.sensors.registry.read(sensor, now), 1000)
