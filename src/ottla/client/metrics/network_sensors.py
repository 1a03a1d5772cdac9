"""Sensors of connections: requests, responses and latencies by node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.client.metrics.client_metrics import MetricsBuilder
from ottla.client.metrics.reading import SensorReading, combine_readings
from ottla.client.metrics.registry import Registry

if TYPE_CHECKING:
    from ottla.client.config.common_config import CommonConfig
    from ottla.client.network.connection_states import ConnectionStates

COORDINATOR = 2**31 - 1
"""Java subtracts the coordinator's id from this number to name the connection that is used only for the coordinator."""
Traffic = tuple[SensorReading, SensorReading, SensorReading]
"""Requests, responses and latencies."""


class NodeSensors:
    """The sensors of one broker."""

    __slots__ = ("latency", "requests", "responses")

    def __init__(self, registry: Registry) -> None:
        self.requests = registry.sensor()
        """Bytes of each request."""
        self.responses = registry.sensor()
        """Bytes of each response."""
        self.latency = registry.sensor()
        """Seconds from sending a request to its response."""

    def record_response(self, size_bytes: int, seconds: float) -> None:
        """Record a response."""
        self.responses.record(size_bytes)
        self.latency.record(seconds)


class NetworkSensors:
    """The sensors of one network client."""

    def __init__(self, config: CommonConfig, states: ConnectionStates, now: float) -> None:
        self.registry = Registry(config.metrics_num_samples, config.metrics_sample_window_ms, now)
        """Ticked by every poll. Other components of the same thread register their sensors here too."""
        self.opened, self.ended = self.registry.add(states.opened), self.registry.add(states.ended)
        successes = states.opened if config.security_protocol == "SSL" else self.registry.add(states.logins)
        self.logins = (
            successes,
            self.registry.add(states.refusals),
            self.registry.add(states.repeated_logins),
            self.registry.add(states.failed_repeated_logins),
        )
        """Successful and failed logins of new connections, then successful and failed repeated logins."""
        self._states = states
        self._nodes: dict[int, NodeSensors] = {}

    def for_node(self, node_id: int) -> NodeSensors:
        sensors = self._nodes.get(node_id)
        if sensors is None:
            sensors = self._nodes[node_id] = NodeSensors(self.registry)
        return sensors

    @property
    def connections(self) -> int:
        """The number of ready connections."""
        return self._states.ready_count()

    def readings(self, now: float) -> dict[int, Traffic]:
        """Return requests, responses and latencies by node."""
        read = self.registry.read
        return {
            node_id: (read(each.requests, now), read(each.responses, now), read(each.latency, now))
            for node_id, each in self._nodes.copy().items()
        }


def write_network(builder: MetricsBuilder, kind: str, networks: Sequence[NetworkSensors], now: float) -> None:
    """Write the metrics of `kind`-metrics that all clients have, and `kind`-node-metrics.

    The first network connects to all brokers, the second to the group coordinator only.
    """
    by_node: dict[str, list[Traffic]] = {}
    for place, network in enumerate(networks):
        for node_id, traffic in network.readings(now).items():
            by_node.setdefault(node_tag(node_id, is_coordinator_connection=place > 0), []).append(traffic)
    builder.select_group(f"{kind}-metrics").put("connection-count", sum(each.connections for each in networks))
    write_counted(builder, "connection-creation", [each.registry.read(each.opened, now) for each in networks])
    write_counted(builder, "connection-close", [each.registry.read(each.ended, now) for each in networks])
    write_logins(builder, networks, now)
    write_traffic(builder, [traffic for of_node in by_node.values() for traffic in of_node])
    for node, of_node in by_node.items():
        write_traffic(builder.select_group(f"{kind}-node-metrics", node_id=node), of_node)


def write_logins(builder: MetricsBuilder, networks: Sequence[NetworkSensors], now: float) -> None:
    """Write the logins of new connections and the repeated logins."""
    successes, failures, repeated_successes, repeated_failures = (
        [each.registry.read(sensor, now) for each, sensor in of_clients]
        for of_clients in zip(*([(each, sensor) for sensor in each.logins] for each in networks), strict=True)
    )
    write_counted(builder, "successful-authentication", successes)
    write_counted(builder, "failed-authentication", failures)
    write_counted(builder, "successful-reauthentication", repeated_successes)
    write_counted(builder, "failed-reauthentication", repeated_failures)
    write_spread(builder, "reauthentication-latency", combine_readings(repeated_successes), 1000)


def node_tag(node_id: int, *, is_coordinator_connection: bool) -> str:
    """Return the value of the tag `node-id`. A bootstrap server has a negative id."""
    return f"node-{COORDINATOR - node_id if is_coordinator_connection and node_id >= 0 else node_id}"


def write_counted(builder: MetricsBuilder, name: str, readings: Iterable[SensorReading]) -> None:
    """Write how often an event occurred, in total and per second."""
    reading = combine_readings(readings)
    builder.put(f"{name}-total", reading.event_count)
    builder.put(f"{name}-rate", reading.per_second(reading.recent_count))


def write_amount(builder: MetricsBuilder, name: str, reading: SensorReading) -> None:
    """Write the sum of the recorded values, in total and per second."""
    builder.put(f"{name}-total", reading.total)
    builder.put(f"{name}-rate", reading.per_second(reading.recent_total))


def write_spread(builder: MetricsBuilder, name: str, reading: SensorReading, unit: float = 1.0) -> None:
    """Write the average and the maximum, multiplied by `unit`."""
    builder.put(f"{name}-avg", reading.average * unit)
    builder.put(f"{name}-max", reading.maximum * unit)


def write_traffic(builder: MetricsBuilder, readings: Sequence[Traffic]) -> None:
    """Write the sizes of requests and responses, and the latency."""
    requests, responses, latency = (combine_readings(each[place] for each in readings) for place in range(3))
    write_counted(builder, "request", [requests])
    write_spread(builder, "request-size", requests)
    write_amount(builder, "outgoing-byte", requests)
    write_counted(builder, "response", [responses])
    write_amount(builder, "incoming-byte", responses)
    write_spread(builder, "request-latency", latency, 1000)
