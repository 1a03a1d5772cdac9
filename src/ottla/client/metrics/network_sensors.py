"""What a client measures of its connections: what goes out and comes in, and how long answers take, by node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.client.metrics.client_metrics import Sheet
from ottla.client.metrics.reading import Reading, together
from ottla.client.metrics.registry import Registry

if TYPE_CHECKING:
    from ottla.client.config.common_config import CommonConfig
    from ottla.client.network.connection_states import ConnectionStates

COORDINATOR = 2**31 - 1
"""What Java takes a coordinator's number from, for the connection that is for it alone."""
Traffic = tuple[Reading, Reading, Reading]
"""Requests, answers and latencies."""


class NodeSensors:
    """Of one broker."""

    __slots__ = ("latency", "requests", "responses")

    def __init__(self, registry: Registry) -> None:
        self.requests = registry.sensor()
        """Bytes of each."""
        self.responses = registry.sensor()
        """Bytes of each."""
        self.latency = registry.sensor()
        """Seconds from a request's leaving us to its answer."""

    def received(self, size_bytes: int, seconds: float) -> None:
        """An answer is here."""
        self.responses.record(size_bytes)
        self.latency.record(seconds)


class NetworkSensors:
    """Of one network client."""

    def __init__(self, config: CommonConfig, states: ConnectionStates, now: float) -> None:
        self.registry = Registry(config.metrics_num_samples, config.metrics_sample_window_ms, now)
        """Ticked by every poll; the sensors of others on this thread are in it, too."""
        self.opened, self.ended = self.registry.add(states.opened), self.registry.add(states.ended)
        let_in = states.opened if config.security_protocol == "SSL" else self.registry.add(states.logins)
        self.logins = (
            let_in,
            self.registry.add(states.refusals),
            self.registry.add(states.logins_again),
            self.registry.add(states.refusals_again),
        )
        """Those that were taken and refused, of new connections, and of those whose session goes on."""
        self._states = states
        self._nodes: dict[int, NodeSensors] = {}

    def of(self, node_id: int) -> NodeSensors:
        sensors = self._nodes.get(node_id)
        if sensors is None:
            sensors = self._nodes[node_id] = NodeSensors(self.registry)
        return sensors

    @property
    def connections(self) -> int:
        """Those that may be used now."""
        return self._states.ready_count()

    def readings(self, now: float) -> dict[int, Traffic]:
        """Requests, answers and latencies by node."""
        read = self.registry.read
        return {
            node_id: (read(each.requests, now), read(each.responses, now), read(each.latency, now))
            for node_id, each in self._nodes.copy().items()
        }


def write_network(sheet: Sheet, kind: str, networks: Sequence[NetworkSensors], now: float) -> None:
    """The numbers of `kind`-metrics that all clients have, and of `kind`-node-metrics.

    The first of the networks is that of all brokers, the second that to a group's coordinator.
    """
    by_node: dict[str, list[Traffic]] = {}
    for place, network in enumerate(networks):
        for node_id, traffic in network.readings(now).items():
            by_node.setdefault(name_of(node_id, of_coordinator=place > 0), []).append(traffic)
    sheet.of(f"{kind}-metrics").put("connection-count", sum(each.connections for each in networks))
    write_counted(sheet, "connection-creation", [each.registry.read(each.opened, now) for each in networks])
    write_counted(sheet, "connection-close", [each.registry.read(each.ended, now) for each in networks])
    write_logins(sheet, networks, now)
    write_traffic(sheet, [traffic for of_node in by_node.values() for traffic in of_node])
    for node, of_node in by_node.items():
        write_traffic(sheet.of(f"{kind}-node-metrics", node_id=node), of_node)


def write_logins(sheet: Sheet, networks: Sequence[NetworkSensors], now: float) -> None:
    """Of new connections, and of those whose session goes on."""
    taken, refused, taken_again, refused_again = (
        [each.registry.read(sensor, now) for each, sensor in of_all]
        for of_all in zip(*([(each, sensor) for sensor in each.logins] for each in networks), strict=True)
    )
    write_counted(sheet, "successful-authentication", taken)
    write_counted(sheet, "failed-authentication", refused)
    write_counted(sheet, "successful-reauthentication", taken_again)
    write_counted(sheet, "failed-reauthentication", refused_again)
    write_spread(sheet, "reauthentication-latency", together(taken_again), 1000)


def name_of(node_id: int, *, of_coordinator: bool) -> str:
    """What a node is called in tags; one of `bootstrap.servers` has a number below zero."""
    return f"node-{COORDINATOR - node_id if of_coordinator and node_id >= 0 else node_id}"


def write_counted(sheet: Sheet, name: str, readings: Iterable[Reading]) -> None:
    """How often something was, and how often in a second."""
    reading = together(readings)
    sheet.put(f"{name}-total", reading.times)
    sheet.put(f"{name}-rate", reading.per_second(reading.lately))


def write_amount(sheet: Sheet, name: str, reading: Reading) -> None:
    """How much there was, and how much in a second."""
    sheet.put(f"{name}-total", reading.total)
    sheet.put(f"{name}-rate", reading.per_second(reading.amount))


def write_spread(sheet: Sheet, name: str, reading: Reading, unit: float = 1.0) -> None:
    """The average and the maximum, `unit` to one of what was recorded."""
    sheet.put(f"{name}-avg", reading.average * unit)
    sheet.put(f"{name}-max", reading.maximum * unit)


def write_traffic(sheet: Sheet, readings: Sequence[Traffic]) -> None:
    """What goes out and comes in."""
    requests, responses, latency = (together(each[place] for each in readings) for place in range(3))
    write_counted(sheet, "request", [requests])
    write_spread(sheet, "request-size", requests)
    write_amount(sheet, "outgoing-byte", requests)
    write_counted(sheet, "response", [responses])
    write_amount(sheet, "incoming-byte", responses)
    write_spread(sheet, "request-latency", latency, 1000)
