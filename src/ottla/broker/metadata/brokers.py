"""The registered brokers of the cluster, as Metadata responses list them.

A Metadata response to a client of librdkafka lists a broker for some seconds after it has left, without any partition that it leads. A
broker that is restarted has usually returned by then, and the client does not see it disappear. librdkafka from 2.10 on ends the
thread of a broker that is not listed. A `send_offsets_to_transaction` that waits for that broker as the group's coordinator then never
returns (librdkafka issue 5511). Other clients get the same list as from Kafka: the Java admin client would wait a minute for a
listed broker that does not answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.broker.metadata.observed_metadata import ObservedMetadata

LISTED_SECONDS = 5.0
"""How long a broker that has left is listed: a restart takes one to three seconds, and an admin client may wait for a listed broker."""


class KnownBroker(NamedTuple):
    """A broker, and its address on the listener of the client's connection."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


class Brokers:
    """The brokers that are registered in the committed metadata."""

    def __init__(self, cluster: ObservedMetadata) -> None:
        self._cluster = cluster
        self._unfenced: set[int] | None = None
        """The unfenced brokers at the last change; None before the metadata are known."""
        self._left_at: dict[int, float] = {}
        """The time at which each broker that is fenced now was first seen as fenced."""

    def record_start(self, now: float) -> None:
        """Start to track brokers that leave. Those that were shut down before may be about to return, too."""
        registrations = self._cluster.machine.registrations.values()
        self._unfenced = {each.broker_id for each in registrations if not each.fenced}
        self._left_at = {each.broker_id: now for each in registrations if each.fenced and each.in_controlled_shutdown}

    def record_changes(self, now: float) -> None:
        """Notice which brokers have left or returned, after each change of the metadata."""
        if self._unfenced is None:
            return
        unfenced = {each.broker_id for each in self._cluster.machine.registrations.values() if not each.fenced}
        for broker in self._unfenced - unfenced:
            self._left_at[broker] = now
        for broker in unfenced & self._left_at.keys():
            del self._left_at[broker]
        self._unfenced = unfenced

    def list_known(self, listener: str, software: str, now: float) -> Iterator[KnownBroker]:
        """Yield the brokers for a Metadata response: those that are alive, and for librdkafka those that left a moment ago."""
        for each in self.reached_by(listener):
            if not each.fenced or (is_librdkafka(software) and self._has_just_stopped(each.node_id, now)):
                yield each

    def _has_just_stopped(self, broker: int, now: float) -> bool:
        left_at = self._left_at.get(broker)
        return left_at is not None and now - left_at < LISTED_SECONDS

    def reached_by(self, listener: str) -> Iterator[KnownBroker]:
        """Yield the brokers that have a listener of that name, including fenced ones, by node id."""
        for _, each in sorted(self._cluster.machine.registrations.items()):
            place = each.find_listener(listener)
            if place is not None:
                yield KnownBroker(each.broker_id, place.host, place.port, each.rack, each.fenced)

    def list_alive(self, listener: str) -> dict[int, KnownBroker]:
        """Return the unfenced brokers by node id."""
        return {each.node_id: each for each in self.reached_by(listener) if not each.fenced}

    def list_racks(self, listener: str) -> dict[int, str | None]:
        """Return the racks of the unfenced brokers by node id."""
        return {id_: each.rack for id_, each in self.list_alive(listener).items()}


def is_librdkafka(software: str) -> bool:
    """Return True if a client's software is librdkafka or is built on it, by the name that it gave in ApiVersions (KIP-511)."""
    return "rdkafka" in software or software.startswith("confluent-kafka")
